package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func testSight(t *testing.T, fresh func(t testing.TB) Database) {
	s := fresh(t).open(t)
	look := func(slugs ...string) store.Sight {
		t.Helper()
		sight, err := s.Sight(t.Context(), slugs)
		if err != nil {
			t.Fatalf("Sight(%q): %v", slugs, err)
		}
		slices.SortFunc(sight.Sightings, func(a, b store.Sighting) int { return strings.Compare(a.Slug, b.Slug) })
		return sight
	}
	if diff := cmp.Diff(look("nobody"), store.Sight{}); diff != "" {
		t.Errorf("of an empty store (-got +want):\n%s", diff)
	}

	a := newEndpoint(t, s, "A", func(e *store.Endpoint) { e.Public, e.Tags = true, []string{"prod", "web"} })
	b := newEndpoint(t, s, "B")
	recordBy(t, s, ruled(opens), checkAt(a, start, probe.Down))
	first := look(a.Slug, b.Slug, "nobody", "'; --")
	want := []store.Sighting{
		{ID: a.ID, Slug: a.Slug, Tags: a.Tags, Public: true, Status: store.StatusDown, Since: start, CheckedAt: start},
		{ID: b.ID, Slug: b.Slug, Status: store.StatusPending},
	}
	if diff := cmp.Diff(first.Sightings, want, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Since" }, cmp.Ignore())); diff != "" {
		t.Errorf("sightings (-got +want):\n%s", diff)
	}
	if first.LastEntry == "" {
		t.Error("no entry is seen of the incident that was opened")
	}

	recordBy(t, s, ruled(opens), checkAt(b, minutes(1), probe.Up))
	second := look(a.Slug, b.Slug)
	if second.LastEntry != first.LastEntry || second.Sightings[1].CheckedAt.IsZero() {
		t.Errorf("sight %+v, want the second endpoint checked and no incident changed", second)
	}
	if _, err := s.UpdateEndpoint(t.Context(), a.Slug, func(e *store.Endpoint) error { e.Paused = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if third := look(a.Slug); third.Sightings[0].Status != store.StatusPaused || third.LastEntry == first.LastEntry {
		t.Errorf("sight %+v, want the endpoint paused, and its incident over", third)
	}

	var many []string
	for i := range store.MaxSightings + 1 {
		many = append(many, fmt.Sprint(i))
	}
	if _, err := s.Sight(t.Context(), many); err == nil {
		t.Error("more than MaxSightings are looked at")
	}
}
