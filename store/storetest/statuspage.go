package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

// Logo returns a PNG of one colour.
func Logo(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 4))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func testStatusPages(t *testing.T, fresh func(t testing.TB) Database) {
	full := func(t *testing.T) store.StatusPage {
		return store.StatusPage{
			Slug: "acme", Name: "ACME \u202eemca <b>", Text: "How we are.\nAlways.", Logo: Logo(t), Accent: "#17604F",
			Sections: []store.PageSection{
				{Title: "Süd", Endpoints: []string{"ep_2", "ep_1"}, Tags: []string{"prod"}},
				{Tags: []string{"eu"}},
			},
			Domain: "Status.acme.example", PasswordHash: "$argon2id$…", HideFromSearch: true,
		}
	}

	t.Run("one comes back as it was given, changes and goes", func(t *testing.T) {
		s := fresh(t).open(t)
		given := full(t)
		kept, err := s.CreateStatusPage(t.Context(), given)
		if err != nil {
			t.Fatal(err)
		}
		want := given
		want.ID, want.DomainToken, want.CreatedAt, want.UpdatedAt = kept.ID, kept.DomainToken, kept.CreatedAt, kept.CreatedAt
		want.LogoType, want.Accent, want.Domain = "image/png", "#17604f", "status.acme.example"
		if diff := cmp.Diff(kept, want); diff != "" || kept.ID == "" || len(kept.DomainToken) < 20 || kept.CreatedAt.IsZero() {
			t.Errorf("CreateStatusPage (-got +want):\n%s", diff)
		}
		if got, err := s.StatusPage(t.Context(), "acme"); !cmp.Equal(got, want) || err != nil {
			t.Errorf("StatusPage (-got +want):\n%s%v", cmp.Diff(got, want), err)
		}
		changed, err := s.UpdateStatusPage(t.Context(), "acme", func(p *store.StatusPage) error {
			p.ID, p.Slug, p.DomainToken, p.CreatedAt = "page_other", "other", "mine", start
			p.Name, p.Logo, p.Sections, p.Domain, p.PasswordHash = "Later", nil, nil, "", ""
			return nil
		})
		want.Name, want.Logo, want.LogoType, want.Sections, want.Domain, want.PasswordHash = "Later", nil, "", nil, "", ""
		want.UpdatedAt = changed.UpdatedAt
		if diff := cmp.Diff(changed, want); diff != "" || err != nil || !changed.UpdatedAt.After(kept.UpdatedAt) {
			t.Errorf("UpdateStatusPage (-got +want):\n%s%v", diff, err)
		}
		if got, err := s.StatusPage(t.Context(), "acme"); !cmp.Equal(got, want) || err != nil {
			t.Errorf("StatusPage after the edit (-got +want):\n%s%v", cmp.Diff(got, want), err)
		}
		if err := s.DeleteStatusPage(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		_, err = s.StatusPage(t.Context(), "acme")
		wantNotFound(t, "StatusPage", err)
	})

	t.Run("all of them by slug, without logos", func(t *testing.T) {
		s := fresh(t).open(t)
		for _, slug := range []string{"b", "a-2", "a"} {
			if _, err := s.CreateStatusPage(t.Context(), store.StatusPage{Slug: slug, Name: "x", Logo: Logo(t)}); err != nil {
				t.Fatal(err)
			}
		}
		found, err := s.StatusPages(t.Context())
		var slugs []string
		for _, p := range found {
			slugs = append(slugs, p.Slug)
			if p.Logo != nil || p.LogoType != "image/png" {
				t.Errorf("%s: a logo of %d bytes, type %q", p.Slug, len(p.Logo), p.LogoType)
			}
		}
		if diff := cmp.Diff(slugs, []string{"a", "a-2", "b"}); diff != "" || err != nil {
			t.Errorf("StatusPages (-got +want):\n%s%v", diff, err)
		}
	})

	t.Run("a domain is proven until it is another one, and that is no change of the page", func(t *testing.T) {
		s := fresh(t).open(t)
		kept, err := s.CreateStatusPage(t.Context(), full(t))
		if err != nil {
			t.Fatal(err)
		}
		prove := func(there bool, at time.Time) store.StatusPage {
			p, err := s.UpdateStatusPage(t.Context(), "acme", func(p *store.StatusPage) error { p.NoteDomain(there, at); return nil })
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		p := prove(true, minutes(1))
		if p.DomainProvenAt == nil || !p.DomainProvenAt.Equal(minutes(1)) || !p.UpdatedAt.Equal(kept.UpdatedAt) {
			t.Errorf("proven at %v, page changed at %v", p.DomainProvenAt, p.UpdatedAt)
		}
		if p = prove(false, minutes(1).Add(store.DomainGrace-time.Second)); p.DomainProvenAt == nil {
			t.Error("a record that is gone for less than the grace ends the domain")
		}
		if p = prove(false, minutes(1).Add(store.DomainGrace)); p.DomainProvenAt != nil {
			t.Error("a record that is gone for as long as the grace leaves the domain")
		}
		prove(true, minutes(2))
		p, err = s.UpdateStatusPage(t.Context(), "acme", func(p *store.StatusPage) error { p.Domain = "other.example"; return nil })
		if err != nil || p.DomainProvenAt != nil {
			t.Errorf("another domain is proven at %v, %v", p.DomainProvenAt, err)
		}
	})

	t.Run("slugs and domains are taken once, and there is an end to pages", func(t *testing.T) {
		s := fresh(t).open(t)
		if _, err := s.CreateStatusPage(t.Context(), full(t)); err != nil {
			t.Fatal(err)
		}
		conflict := func(what, field string, err error) {
			t.Helper()
			if c, ok := errors.AsType[store.Conflict](err); !ok || c.Field != field {
				t.Errorf("%s: %v, want a conflict about %s", what, err, field)
			}
		}
		_, err := s.CreateStatusPage(t.Context(), store.StatusPage{Slug: "acme", Name: "x"})
		conflict("the same slug", "slug", err)
		_, err = s.CreateStatusPage(t.Context(), store.StatusPage{Slug: "b", Name: "x", Domain: "status.acme.example"})
		conflict("the same domain", "domain", err)
		for n := 2; n <= store.MaxStatusPages; n++ {
			if _, err := s.CreateStatusPage(t.Context(), store.StatusPage{Slug: fmt.Sprintf("p%d", n), Name: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = s.UpdateStatusPage(t.Context(), "p2", func(p *store.StatusPage) error { p.Domain = "status.acme.example"; return nil })
		conflict("the domain of another page", "domain", err)
		_, err = s.CreateStatusPage(t.Context(), store.StatusPage{Slug: "many", Name: "x"})
		conflict("one page too many", "slug", err)
	})

	t.Run("what cannot be kept is refused, and what is not there is not found", func(t *testing.T) {
		s := fresh(t).open(t)
		for field, edit := range map[string]func(*store.StatusPage){
			"slug":                  func(p *store.StatusPage) { p.Slug = "new" },
			"name":                  func(p *store.StatusPage) { p.Name = strings.Repeat("a", 10_000) },
			"text":                  func(p *store.StatusPage) { p.Text = strings.Repeat("a", 10_000) },
			"accent":                func(p *store.StatusPage) { p.Accent = "red" },
			"domain":                func(p *store.StatusPage) { p.Domain = "https://acme.example" },
			"logo":                  func(p *store.StatusPage) { p.Logo = []byte("<svg onload=alert(1)>") },
			"sections[0].endpoints": func(p *store.StatusPage) { p.Sections = []store.PageSection{{Title: "none"}} },
		} {
			given := full(t)
			edit(&given)
			_, err := s.CreateStatusPage(t.Context(), given)
			if bad, ok := errors.AsType[store.Invalid](err); !ok || bad.Problems[0].Field != field {
				t.Errorf("%s: %v", field, err)
			}
		}
		for _, slug := range []string{"", "none", "\x00"} {
			_, err := s.StatusPage(t.Context(), slug)
			wantNotFound(t, "StatusPage", err)
			_, err = s.UpdateStatusPage(t.Context(), slug, func(*store.StatusPage) error { return nil })
			wantNotFound(t, "UpdateStatusPage", err)
			wantNotFound(t, "DeleteStatusPage", s.DeleteStatusPage(t.Context(), slug))
		}
		given := full(t)
		given.Text, given.Sections[0].Endpoints[0] = "a\x00b\xff", "\x00"
		kept, err := s.CreateStatusPage(t.Context(), given)
		if err != nil || kept.Text != "a\uFFFDb\uFFFD" || kept.Sections[0].Endpoints[0] != "\uFFFD" {
			t.Errorf("CreateStatusPage = %+v, %v, want text", kept, err)
		}
	})
}
