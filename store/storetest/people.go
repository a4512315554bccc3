package storetest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// newMember makes a member beside the first.
func newMember(t testing.TB, s store.Store, name string, role store.Role) store.User {
	t.Helper()
	u, err := s.CreateUser(t.Context(), store.User{Name: name, PasswordHash: "hash of " + name, Role: role})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// loggedIn makes a session of a user, seen last at a time.
func loggedIn(t testing.TB, s store.Store, u store.User, hash string, at time.Time) store.Session {
	t.Helper()
	session := store.Session{
		TokenHash: []byte(hash), UserID: u.ID, Address: "192.0.2.1", UserAgent: "Firefox", CreatedAt: at, LastSeenAt: at,
		ExpiresAt: at.Add(time.Hour),
	}
	if err := s.CreateSession(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	return session
}

func wantSessions(t testing.TB, s store.Store, u store.User, want ...string) {
	t.Helper()
	found, err := s.Sessions(t.Context(), u.ID, minutes(5))
	var got []string
	for _, session := range found {
		got = append(got, string(session.TokenHash))
	}
	if diff := cmp.Diff(got, want); diff != "" || err != nil {
		t.Errorf("sessions of %s (-got +want):\n%s%v", u.Name, diff, err)
	}
}

func testMembers(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("members are listed by name and found by id, name and identity", func(t *testing.T) {
		s := fresh(t).open(t)
		ada := newUser(t, s)
		given := store.User{Name: "bob", Role: store.RoleViewer, Issuer: "https://id.example", Subject: "42"}
		bob, err := s.CreateUser(t.Context(), given)
		if err != nil {
			t.Fatal(err)
		}
		given.ID, given.CreatedAt = bob.ID, bob.CreatedAt
		if diff := cmp.Diff(bob, given); diff != "" || bob.ID == "" {
			t.Errorf("CreateUser (-got +want):\n%s", diff)
		}
		if all, err := s.Users(t.Context()); err != nil || !cmp.Equal(all, []store.User{ada, bob}) {
			t.Errorf("Users = %+v, %v, want Ada and bob", all, err)
		}
		for name, find := range map[string]func() (store.User, error){
			"id":       func() (store.User, error) { return s.User(t.Context(), bob.ID) },
			"name":     func() (store.User, error) { return s.UserByName(t.Context(), "BOB") },
			"identity": func() (store.User, error) { return s.UserByIdentity(t.Context(), "https://id.example", "42") },
		} {
			if got, err := find(); err != nil || !cmp.Equal(got, bob) {
				t.Errorf("by %s: %+v, %v, want %+v", name, got, err, bob)
			}
		}
		_, err = s.UserByIdentity(t.Context(), "https://other.example", "42")
		wantNotFound(t, "UserByIdentity of another issuer", err)
		_, err = s.UserByIdentity(t.Context(), "", "")
		wantNotFound(t, "UserByIdentity of nobody", err)
		_, err = s.CreateUser(t.Context(), store.User{Name: "ADA", Role: store.RoleViewer})
		wantConflict(t, err, "name")
		_, err = s.CreateUser(t.Context(), store.User{Name: "x", Role: store.RoleViewer, Issuer: "https://id.example", Subject: "42"})
		wantConflict(t, err, "subject")
		_, err = s.CreateUser(t.Context(), store.User{Name: "x", Role: "owner"})
		wantInvalid(t, err, "role")
	})

	t.Run("the last admin who can log in stays one", func(t *testing.T) {
		s := fresh(t).open(t)
		ada := newUser(t, s)
		eve := newMember(t, s, "eve", store.RoleAdmin)
		demote := func(u *store.User) error { u.Role = store.RoleEditor; return nil }
		disable := func(u *store.User) error { at := start; u.DisabledAt = &at; return nil }
		if _, err := s.UpdateUser(t.Context(), eve.ID, disable); err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(*store.User) error{"demote": demote, "disable": disable} {
			_, err := s.UpdateUser(t.Context(), ada.ID, change)
			wantConflict(t, err, "role")
			if u, err := s.User(t.Context(), ada.ID); err != nil || !cmp.Equal(u, ada) {
				t.Errorf("after a refused %s: %+v, %v", name, u, err)
			}
		}
		wantConflict(t, s.DeleteUser(t.Context(), ada.ID), "role")
		if _, err := s.UpdateUser(t.Context(), eve.ID, func(u *store.User) error { u.DisabledAt = nil; return nil }); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteUser(t.Context(), ada.ID); err != nil {
			t.Errorf("DeleteUser with another admin: %v", err)
		}
		wantNotFound(t, "DeleteUser twice", s.DeleteUser(t.Context(), ada.ID))
		_, err := s.UpdateUser(t.Context(), ada.ID, demote)
		wantNotFound(t, "UpdateUser of nobody", err)
	})

	t.Run("whoever is disabled is out and hears no more", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		newUser(t, s)
		bob := newMember(t, s, "bob", store.RoleEditor)
		loggedIn(t, s, bob, "one", start)
		subscribe(t, s, "bob@example.com", member(bob))
		at := minutes(1)
		bob, err := s.UpdateUser(t.Context(), bob.ID, func(u *store.User) error { u.DisabledAt = &at; return nil })
		if err != nil || bob.DisabledAt == nil || !bob.DisabledAt.Equal(at) {
			t.Fatalf("UpdateUser = %+v, %v", bob, err)
		}
		_, _, err = s.Session(t.Context(), []byte("one"), start)
		wantNotFound(t, "Session of somebody disabled", err)
		for _, table := range []string{"sessions", "subscriptions", "channels"} {
			if n := count(t, db, table); n != 0 {
				t.Errorf("%d rows in %s, want none", n, table)
			}
		}
		if _, err := s.UpdateUser(t.Context(), bob.ID, func(u *store.User) error { u.DisabledAt = nil; return nil }); err != nil {
			t.Fatal(err)
		}
		loggedIn(t, s, bob, "two", start)
		subscribe(t, s, "bob@example.com", member(bob))
		if err := s.DeleteUser(t.Context(), bob.ID); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"sessions", "subscriptions", "channels"} {
			if n := count(t, db, table); n != 0 {
				t.Errorf("%d rows in %s after the member is gone, want none", n, table)
			}
		}
	})

	t.Run("sessions are listed, the one seen last first, and end one by one, all but one, or with the password", func(t *testing.T) {
		s := fresh(t).open(t)
		ada := newUser(t, s)
		bob := newMember(t, s, "bob", store.RoleViewer)
		loggedIn(t, s, ada, "ada's", start)
		first := loggedIn(t, s, bob, "first", start)
		loggedIn(t, s, bob, "second", minutes(1))
		loggedIn(t, s, bob, "third", minutes(2))
		if err := s.SeeSession(t.Context(), []byte("first"), minutes(3)); err != nil {
			t.Fatal(err)
		}
		if err := s.SeeSession(t.Context(), []byte("none"), minutes(3)); err != nil {
			t.Errorf("SeeSession of none: %v", err)
		}
		wantSessions(t, s, bob, "first", "third", "second")
		first.LastSeenAt = minutes(3)
		if got, _, err := s.Session(t.Context(), []byte("first"), minutes(4)); err != nil || !cmp.Equal(got, first) {
			t.Errorf("Session = %+v, %v, want %+v", got, err, first)
		}
		if err := s.DeleteSession(t.Context(), []byte("second")); err != nil {
			t.Fatal(err)
		}
		wantSessions(t, s, bob, "first", "third")
		if n, err := s.DeleteSessions(t.Context(), bob.ID, []byte("third")); err != nil || n != 1 {
			t.Errorf("DeleteSessions = %d, %v, want one", n, err)
		}
		wantSessions(t, s, bob, "third")
		if _, err := s.UpdateUser(t.Context(), bob.ID, func(u *store.User) error { u.Role = store.RoleEditor; return nil }); err != nil {
			t.Fatal(err)
		}
		wantSessions(t, s, bob, "third")
		if _, err := s.UpdateUser(t.Context(), bob.ID, func(u *store.User) error { u.PasswordHash = "other"; return nil }); err != nil {
			t.Fatal(err)
		}
		wantSessions(t, s, bob)
		wantSessions(t, s, ada, "ada's")
	})

	t.Run("an invitation makes one member, once, while it is good", func(t *testing.T) {
		s := fresh(t).open(t)
		newUser(t, s)
		given := store.Invitation{Hash: []byte("hash"), Name: "Bob", Role: store.RoleEditor, Author: "Ada", ExpiresAt: time.Now().Add(time.Hour)}
		i, err := s.CreateInvitation(t.Context(), given)
		if err != nil {
			t.Fatal(err)
		}
		given.ID, given.CreatedAt, given.ExpiresAt = i.ID, i.CreatedAt, i.ExpiresAt
		if got, err := s.Invitation(t.Context(), []byte("hash"), time.Now()); err != nil || !cmp.Equal(got, given) {
			t.Errorf("Invitation = %+v, %v, want %+v", got, err, given)
		}
		if all, err := s.Invitations(t.Context(), time.Now()); err != nil || !cmp.Equal(all, []store.Invitation{given}) {
			t.Errorf("Invitations = %+v, %v", all, err)
		}
		_, err = s.Invitation(t.Context(), []byte("hash"), i.ExpiresAt)
		wantNotFound(t, "Invitation at its end", err)
		_, err = s.AcceptInvitation(t.Context(), []byte("hash"), i.ExpiresAt, store.User{Name: "bob"})
		wantNotFound(t, "AcceptInvitation at its end", err)
		_, err = s.AcceptInvitation(t.Context(), []byte("hash"), time.Now(), store.User{Name: "ada"})
		wantConflict(t, err, "name")
		bob, err := s.AcceptInvitation(t.Context(), []byte("hash"), time.Now(), store.User{Name: "bob", PasswordHash: "x", Role: store.RoleAdmin})
		if err != nil || bob.Role != store.RoleEditor || bob.Name != "bob" || bob.PasswordHash != "x" {
			t.Errorf("AcceptInvitation = %+v, %v, want bob as an editor, whatever he says", bob, err)
		}
		_, err = s.AcceptInvitation(t.Context(), []byte("hash"), time.Now(), store.User{Name: "carl"})
		wantNotFound(t, "AcceptInvitation twice", err)

		loggedIn(t, s, bob, "session", start)
		reset := store.Invitation{Hash: []byte("r1"), UserID: bob.ID, Name: "bob", Role: bob.Role, Author: "Ada", ExpiresAt: time.Now().Add(time.Hour)}
		if _, err := s.CreateInvitation(t.Context(), reset); err != nil {
			t.Fatal(err)
		}
		reset.Hash = []byte("r2")
		if _, err := s.CreateInvitation(t.Context(), reset); err != nil {
			t.Fatal(err)
		}
		_, err = s.AcceptInvitation(t.Context(), []byte("r1"), time.Now(), store.User{PasswordHash: "y"})
		wantNotFound(t, "AcceptInvitation of a link that another one replaced", err)
		again, err := s.AcceptInvitation(t.Context(), []byte("r2"), time.Now(), store.User{Name: "mallory", PasswordHash: "y", Role: store.RoleAdmin})
		bob.PasswordHash = "y"
		if diff := cmp.Diff(again, bob); diff != "" || err != nil {
			t.Errorf("AcceptInvitation of a reset (-got +want):\n%s%v", diff, err)
		}
		wantSessions(t, s, bob)
		reset.UserID = "usr_none"
		_, err = s.CreateInvitation(t.Context(), reset)
		wantNotFound(t, "CreateInvitation for nobody", err)
		gone, err := s.CreateInvitation(t.Context(), store.Invitation{Hash: []byte("h3"), Role: store.RoleViewer, ExpiresAt: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteInvitation(t.Context(), gone.ID); err != nil {
			t.Errorf("DeleteInvitation: %v", err)
		}
		wantNotFound(t, "DeleteInvitation twice", s.DeleteInvitation(t.Context(), gone.ID))
	})

	t.Run("a second factor is sealed, counts once it is confirmed, and is not replaced", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		ada := newUser(t, s)
		for _, secret := range []string{"FIRST", "SECRET"} { // the second takes the place of one that was never confirmed
			if _, err := s.PutFactor(t.Context(), store.Factor{UserID: ada.ID, Secret: secret}); err != nil {
				t.Fatal(err)
			}
		}
		if u, err := s.User(t.Context(), ada.ID); err != nil || u.HasFactor {
			t.Errorf("User = %+v, %v, want no factor before it is confirmed", u, err)
		}
		at := minutes(1)
		want, err := s.UpdateFactor(t.Context(), ada.ID, func(f *store.Factor) error {
			f.ConfirmedAt, f.LastStep, f.Recovery = &at, 58_000_000, []string{"a", "b"}
			return nil
		})
		if err != nil || want.Secret != "SECRET" {
			t.Fatalf("UpdateFactor = %+v, %v", want, err)
		}
		if got, err := s.Factor(t.Context(), ada.ID); err != nil || !cmp.Equal(got, want) {
			t.Errorf("Factor = %+v, %v, want %+v", got, err, want)
		}
		var sealed []byte
		if err := db.SQL(t).QueryRowContext(t.Context(), `SELECT secret FROM second_factors`).Scan(&sealed); err != nil || strings.Contains(string(sealed), "SECRET") {
			t.Errorf("the secret is kept as %q, %v", sealed, err)
		}
		if u, err := s.User(t.Context(), ada.ID); err != nil || !u.HasFactor {
			t.Errorf("User = %+v, %v, want a factor", u, err)
		}
		_, err = s.PutFactor(t.Context(), store.Factor{UserID: ada.ID, Secret: "OTHER"})
		wantConflict(t, err, "code")
		if err := s.DeleteFactor(t.Context(), ada.ID); err != nil {
			t.Fatal(err)
		}
		wantNotFound(t, "DeleteFactor twice", s.DeleteFactor(t.Context(), ada.ID))
		_, err = s.Factor(t.Context(), ada.ID)
		wantNotFound(t, "Factor that is gone", err)
		_, err = s.PutFactor(t.Context(), store.Factor{UserID: "usr_none", Secret: "X"})
		wantNotFound(t, "PutFactor of nobody", err)
	})

	t.Run("a token has a role and scopes, and ends", func(t *testing.T) {
		s := fresh(t).open(t)
		end := minutes(10)
		given := store.Token{
			Name: "ci", Hash: []byte("h"), Role: store.RoleEditor, ExpiresAt: &end,
			Scopes: []store.Scope{store.ScopeEndpoints, store.ScopeChecks},
		}
		kept, err := s.CreateToken(t.Context(), given)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := s.Tokens(t.Context()); err != nil || !cmp.Equal(all, []store.Token{kept}) || !cmp.Equal(all[0].Scopes, given.Scopes) {
			t.Errorf("Tokens = %+v, %v", all, err)
		}
		if _, err := s.UseToken(t.Context(), []byte("h"), minutes(9)); err != nil {
			t.Errorf("UseToken before its end: %v", err)
		}
		_, err = s.UseToken(t.Context(), []byte("h"), end)
		wantNotFound(t, "UseToken at its end", err)
	})

	t.Run("logins are the sessions and tokens that are good", func(t *testing.T) {
		s := fresh(t).open(t)
		ada := newUser(t, s)
		bob := newMember(t, s, "bob", store.RoleEditor)
		loggedIn(t, s, ada, "ada's", start)
		loggedIn(t, s, bob, "bob's", start)
		end := minutes(10)
		for _, given := range []store.Token{
			{Name: "ends", Hash: []byte("ends"), Role: store.RoleViewer, ExpiresAt: &end},
			{Name: "lasts", Hash: []byte("lasts"), Role: store.RoleEditor},
		} {
			if _, err := s.CreateToken(t.Context(), given); err != nil {
				t.Fatal(err)
			}
		}
		want := func(what string, now time.Time, logins ...string) {
			t.Helper()
			all := [][]byte{[]byte("ada's"), []byte("bob's"), []byte("ends"), []byte("lasts"), []byte("none"), {}}
			found, err := s.Logins(t.Context(), all, now)
			var got []string
			for _, l := range found {
				got = append(got, string(l.Hash)+" "+string(l.Role))
			}
			slices.Sort(got)
			if diff := cmp.Diff(got, logins); diff != "" || err != nil {
				t.Errorf("%s (-got +want):\n%s%v", what, diff, err)
			}
		}
		want("at first", minutes(9), "ada's admin", "bob's editor", "ends viewer", "lasts editor")
		want("when a token has expired", end, "ada's admin", "bob's editor", "lasts editor")
		want("when the sessions have, too", start.Add(time.Hour), "lasts editor")
		if _, err := s.UpdateUser(t.Context(), bob.ID, func(u *store.User) error { u.Role = store.RoleViewer; return nil }); err != nil {
			t.Fatal(err)
		}
		want("with another role", end, "ada's admin", "bob's viewer", "lasts editor")
		if _, err := s.UpdateUser(t.Context(), bob.ID, func(u *store.User) error { u.DisabledAt = &end; return nil }); err != nil {
			t.Fatal(err)
		}
		tokens, err := s.Tokens(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range tokens {
			if err := s.RevokeToken(t.Context(), token.ID, end); err != nil {
				t.Fatal(err)
			}
		}
		want("when somebody is disabled, and all tokens are revoked", minutes(9), "ada's admin")
		if found, err := s.Logins(t.Context(), nil, end); err != nil || len(found) != 0 {
			t.Errorf("Logins of none = %v, %v", found, err)
		}
	})

	t.Run("with its key lost, a database asks for no second factor", func(t *testing.T) {
		db := fresh(t)
		old := db.open(t)
		ada := newUser(t, old)
		if _, err := old.PutFactor(t.Context(), store.Factor{UserID: ada.ID, Secret: "SECRET"}); err != nil {
			t.Fatal(err)
		}
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := db.ForgetSecrets(t, Sealer(t, 2))
		if err != nil || !cmp.Equal(got.Members, []string{"Ada"}) || count(t, db, "second_factors") != 0 {
			t.Errorf("ForgetSecrets = %+v, %v, want Ada to lose hers", got, err)
		}
	})
}

// auditor is whose changes the tests of the log are.
var auditor = store.Actor{Name: "Ada", Kind: store.ActorMember, Address: "192.0.2.7"}

// audited are the methods by which people change something, each with the actions that are logged when it is called.
var audited = map[string]struct {
	want []string
	call func(ctx context.Context, t testing.TB, s store.Store) error
}{
	"CreateEndpoint": {[]string{"endpoint.create"}, func(ctx context.Context, _ testing.TB, s store.Store) error {
		return second(s.CreateEndpoint(ctx, store.Endpoint{Name: "x", Kind: probe.KindMCP, URL: "https://x.example/mcp", Schedule: "@every 60s"}))
	}},
	"UpdateEndpoint": {[]string{"endpoint.update"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		return second(s.UpdateEndpoint(ctx, newEndpoint(t, s, "x").Slug, func(e *store.Endpoint) error { e.Name = "y"; return nil }))
	}},
	"DeleteEndpoint": {[]string{"endpoint.delete"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		return s.DeleteEndpoint(ctx, newEndpoint(t, s, "x").Slug)
	}},
	"CreateChannel": {[]string{"channel.create"}, func(ctx context.Context, _ testing.TB, s store.Store) error {
		return second(s.CreateChannel(ctx, store.Channel{Name: "x", Type: store.ChannelSlack, Secrets: map[string]string{"webhook_url": "https://hooks.example/SECRET"}}))
	}},
	"UpdateChannel": {[]string{"channel.update"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		return second(s.UpdateChannel(ctx, newChannel(t, s, "x").ID, func(c *store.Channel) error { c.Name = "y"; return nil }))
	}},
	"DeleteChannel": {[]string{"channel.delete"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		return s.DeleteChannel(ctx, newChannel(t, s, "x").ID)
	}},
	"CreateMaintenance": {[]string{"maintenance.create"}, func(ctx context.Context, _ testing.TB, s store.Store) error {
		return second(s.CreateMaintenance(ctx, store.Maintenance{Title: "x", StartsAt: start, EndsAt: minutes(5)}))
	}},
	"UpdateMaintenance": {[]string{"maintenance.update"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		m, err := s.CreateMaintenance(t.Context(), store.Maintenance{Title: "x", StartsAt: start, EndsAt: minutes(5)})
		if err != nil {
			return err
		}
		return second(s.UpdateMaintenance(ctx, m.ID, func(m *store.Maintenance) error { m.Title = "y"; return nil }))
	}},
	"DeleteMaintenance": {[]string{"maintenance.delete"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		m, err := s.CreateMaintenance(t.Context(), store.Maintenance{Title: "x", StartsAt: start, EndsAt: minutes(5)})
		if err != nil {
			return err
		}
		return s.DeleteMaintenance(ctx, m.ID)
	}},
	"CreateStatusPage": {[]string{"status_page.create"}, func(ctx context.Context, _ testing.TB, s store.Store) error {
		return second(s.CreateStatusPage(ctx, store.StatusPage{Slug: "x", Name: "x"}))
	}},
	"UpdateStatusPage": {[]string{"status_page.update"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		if _, err := s.CreateStatusPage(t.Context(), store.StatusPage{Slug: "x", Name: "x"}); err != nil {
			return err
		}
		return second(s.UpdateStatusPage(ctx, "x", func(p *store.StatusPage) error { p.Name = "y"; return nil }))
	}},
	"DeleteStatusPage": {[]string{"status_page.delete"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		if _, err := s.CreateStatusPage(t.Context(), store.StatusPage{Slug: "x", Name: "x"}); err != nil {
			return err
		}
		return s.DeleteStatusPage(ctx, "x")
	}},
	"Raise": {[]string{"incident.create"}, func(ctx context.Context, _ testing.TB, s store.Store) error {
		return third(s.Raise(ctx, store.Incident{Kind: store.IncidentManual, Title: "x", Severity: store.StatusDown, StartedAt: start}, "Ada", "text", nil))
	}},
	"Act": {[]string{"incident.comment"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		return second(s.Act(ctx, raised(t, s).ID, store.Act{Kind: store.ActComment, Author: "Ada", At: minutes(1), Text: "hello"}))
	}},
	"Clear": {[]string{"incident.clear"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		return second(s.Clear(ctx, raised(t, s).Subject, minutes(1), store.ResolutionManual, "over"))
	}},
	"Resend": {[]string{"notice.resend"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		e := newEndpoint(t, s, "x", to(newChannel(t, s, "c")))
		record(t, s, checkAt(e, start, probe.Down))
		due := leaseAll(t, s, minutes(1))
		settleAll(t, s, due[0], store.Settlement{Sent: true})
		return s.Resend(ctx, due[0].Notice.ID, minutes(2))
	}},
	"CreateSubscription": {[]string{"subscription.create"}, func(ctx context.Context, _ testing.TB, s store.Store) error {
		return second(s.CreateSubscription(ctx, subscriptionTo("a@example.com")))
	}},
	"UpdateSubscription": {[]string{"subscription.update"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		u := subscribe(t, s, "a@example.com")
		return second(s.UpdateSubscription(ctx, u.ID, func(u *store.Subscription) error { u.Tags = append(u.Tags, "more"); return nil }))
	}},
	"DeleteSubscription": {[]string{"subscription.delete"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		return s.DeleteSubscription(ctx, subscribe(t, s, "a@example.com").ID)
	}},
	"CreateFirstUser": {[]string{"member.create"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		putSetupToken(t, s, []byte("setup"))
		return second(s.CreateFirstUser(ctx, []byte("setup"), store.User{Name: "Ada", Role: store.RoleAdmin}))
	}},
	"CreateUser": {[]string{"member.create"}, func(ctx context.Context, _ testing.TB, s store.Store) error {
		return second(s.CreateUser(ctx, store.User{Name: "x", Role: store.RoleViewer}))
	}},
	"UpdateUser": {[]string{"member.update"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		return second(s.UpdateUser(ctx, newMember(t, s, "x", store.RoleViewer).ID, func(u *store.User) error { u.Role = store.RoleEditor; return nil }))
	}},
	"DeleteUser": {[]string{"member.delete"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		return s.DeleteUser(ctx, newMember(t, s, "x", store.RoleViewer).ID)
	}},
	"DeleteSession": {[]string{"session.delete"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		return s.DeleteSession(ctx, loggedIn(t, s, newUser(t, s), "one", start).TokenHash)
	}},
	"DeleteSessions": {[]string{"session.delete"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		u := newUser(t, s)
		loggedIn(t, s, u, "one", start)
		return second(s.DeleteSessions(ctx, u.ID, nil))
	}},
	"CreateInvitation": {[]string{"invitation.create"}, func(ctx context.Context, _ testing.TB, s store.Store) error {
		return second(s.CreateInvitation(ctx, invitation()))
	}},
	"DeleteInvitation": {[]string{"invitation.delete"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		i, err := s.CreateInvitation(t.Context(), invitation())
		if err != nil {
			return err
		}
		return s.DeleteInvitation(ctx, i.ID)
	}},
	"AcceptInvitation": {[]string{"member.create"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		if _, err := s.CreateInvitation(t.Context(), invitation()); err != nil {
			return err
		}
		return second(s.AcceptInvitation(ctx, []byte("SECRET"), time.Now(), store.User{Name: "x"}))
	}},
	"PutFactor": {[]string{"second_factor.create"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		return second(s.PutFactor(ctx, store.Factor{UserID: newUser(t, s).ID, Secret: "SECRET"}))
	}},
	"UpdateFactor": {[]string{"second_factor.update"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		f, err := s.PutFactor(t.Context(), store.Factor{UserID: newUser(t, s).ID, Secret: "SECRET"})
		if err != nil {
			return err
		}
		return second(s.UpdateFactor(ctx, f.UserID, func(f *store.Factor) error { f.Recovery = []string{"SECRET"}; return nil }))
	}},
	"DeleteFactor": {[]string{"second_factor.delete"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		f, err := s.PutFactor(t.Context(), store.Factor{UserID: newUser(t, s).ID, Secret: "SECRET"})
		if err != nil {
			return err
		}
		return s.DeleteFactor(ctx, f.UserID)
	}},
	"CreateToken": {[]string{"token.create"}, func(ctx context.Context, _ testing.TB, s store.Store) error {
		return second(s.CreateToken(ctx, store.Token{Name: "x", Hash: []byte("SECRET"), Role: store.RoleViewer}))
	}},
	"RevokeToken": {[]string{"token.revoke"}, func(ctx context.Context, t testing.TB, s store.Store) error {
		token, err := s.CreateToken(t.Context(), store.Token{Name: "x", Hash: []byte("SECRET"), Role: store.RoleViewer})
		if err != nil {
			return err
		}
		return s.RevokeToken(ctx, token.ID, start)
	}},
}

// unlogged are the methods that write and leave no line, and why.
var unlogged = map[string]string{
	"Record":             "checks are what was seen, not what somebody changed",
	"Announce":           "the service says it of itself",
	"Tend":               "the service looks after itself",
	"LeaseNotices":       "delivery",
	"SettleNotice":       "delivery",
	"PruneSubscriptions": "the service looks after itself",
	"PutSetupToken":      "the service makes it as it starts",
	"CreateSession":      "logging in changes nothing",
	"SeeSession":         "nor does being there",
	"UseToken":           "nor does using a token",
}

func second[A any](_ A, err error) error        { return err }
func third[A, B any](_ A, _ B, err error) error { return err }

func invitation() store.Invitation {
	return store.Invitation{Hash: []byte("SECRET"), Name: "x", Role: store.RoleViewer, ExpiresAt: time.Now().Add(time.Hour)}
}

func raised(t testing.TB, s store.Store) store.Incident {
	t.Helper()
	i, _, err := s.Raise(t.Context(), store.Incident{Kind: store.IncidentManual, Title: "x", Severity: store.StatusDown, StartedAt: start}, "Ada", "text", nil)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func testAudit(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("every method that writes is logged, or has its reason not to be", func(t *testing.T) {
		verbs := []string{
			"Create", "Update", "Delete", "Put", "Accept", "Act", "Raise", "Clear", "Resend", "Revoke", "See", "UseToken", "Record", "Announce",
			"Tend", "Lease", "Settle", "Prune",
		}
		methods := reflect.TypeFor[store.Store]()
		for i := range methods.NumMethod() {
			name := methods.Method(i).Name
			writes := slices.ContainsFunc(verbs, func(verb string) bool { return strings.HasPrefix(name, verb) })
			_, logged := audited[name]
			if excused := unlogged[name] != ""; writes && !logged && !excused {
				t.Errorf("nobody says whether %s is logged", name)
			}
		}
	})

	for name, method := range audited {
		t.Run(name+" leaves one line, of whoever asked for it", func(t *testing.T) {
			s := fresh(t).open(t)
			if err := method.call(t.Context(), t, s); err != nil {
				t.Fatal(err)
			}
			if page, err := s.Audits(t.Context(), store.AuditFilter{}); err != nil || len(page.Items) != 0 {
				t.Errorf("lines = %+v, %v, want none where nobody asked", page.Items, err)
			}
			s = fresh(t).open(t)
			if err := method.call(store.WithActor(t.Context(), auditor), t, s); err != nil {
				t.Fatal(err)
			}
			page, err := s.Audits(t.Context(), store.AuditFilter{})
			var got []string
			for _, a := range page.Items {
				got = append(got, a.Action)
				if a.Author != auditor.Name || a.AuthorKind != auditor.Kind || a.Address != auditor.Address || a.Target == "" || a.At.IsZero() {
					t.Errorf("line %+v, want it to say who, whence and of what", a)
				}
				for _, c := range a.Changes {
					if strings.Contains(c.Before+c.After, "SECRET") {
						t.Errorf("line %+v holds a secret", a)
					}
				}
			}
			if diff := cmp.Diff(got, method.want); diff != "" || err != nil {
				t.Errorf("actions (-got +want):\n%s%v", diff, err)
			}
		})
	}

	t.Run("a line says what changed, without secrets, and nothing where nothing did", func(t *testing.T) {
		s := fresh(t).open(t)
		ctx := store.WithActor(t.Context(), auditor)
		e := newEndpoint(t, s, "Weather", func(e *store.Endpoint) {
			e.Headers = []probe.Header{{Name: "Authorization", Value: "HUSH", Secret: true}}
		})
		for range 2 { // the second time changes nothing
			_, err := s.UpdateEndpoint(ctx, e.Slug, func(e *store.Endpoint) error {
				e.Name, e.Paused, e.Tags = "Wetter", true, []string{"prod"}
				e.Headers = []probe.Header{{Name: "Authorization", Value: "HUSH 2", Secret: true}}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		page, err := s.Audits(t.Context(), store.AuditFilter{})
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("lines = %+v, %v, want one", page.Items, err)
		}
		want := store.Audit{
			ID: page.Items[0].ID, At: page.Items[0].At, Author: "Ada", AuthorKind: store.ActorMember, Address: "192.0.2.7",
			Action: "endpoint.update", Target: e.Slug, Name: "Wetter",
			Changes: []store.Change{
				{Field: "headers", After: "changed"},
				{Field: "name", Before: "Weather", After: "Wetter"},
				{Field: "paused", After: "true"},
				{Field: "tags", After: `["prod"]`},
			},
		}
		if diff := cmp.Diff(page.Items[0], want); diff != "" {
			t.Errorf("line (-got +want):\n%s", diff)
		}
	})

	t.Run("what is refused leaves no line", func(t *testing.T) {
		s := fresh(t).open(t)
		ctx := store.WithActor(t.Context(), auditor)
		ada := newUser(t, s)
		wantConflict(t, s.DeleteUser(ctx, ada.ID), "role")
		wantNotFound(t, "DeleteEndpoint", s.DeleteEndpoint(ctx, "none"))
		if page, err := s.Audits(t.Context(), store.AuditFilter{}); err != nil || len(page.Items) != 0 {
			t.Errorf("lines = %+v, %v, want none", page.Items, err)
		}
	})

	t.Run("lines are listed newest first, by author and noun, page by page, and go when they are old", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		bob := store.WithActor(t.Context(), store.Actor{Name: "Bob", Kind: store.ActorToken})
		ctx := store.WithActor(t.Context(), auditor)
		for _, name := range []string{"1", "2", "3"} {
			if _, err := s.CreateUser(ctx, store.User{Name: name, Role: store.RoleViewer}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.CreateToken(bob, store.Token{Name: "4", Hash: []byte("h"), Role: store.RoleViewer}); err != nil {
			t.Fatal(err)
		}
		names := func(f store.AuditFilter) (got []string) {
			t.Helper()
			for {
				page, err := s.Audits(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range page.Items {
					got = append(got, a.Name)
				}
				if f.Cursor = page.Next; f.Cursor == "" {
					return got
				}
			}
		}
		for _, tt := range []struct {
			f    store.AuditFilter
			want []string
		}{
			{store.AuditFilter{Limit: 2}, []string{"4", "3", "2", "1"}},
			{store.AuditFilter{Author: "Bob"}, []string{"4"}},
			{store.AuditFilter{Noun: "member", Limit: 1}, []string{"3", "2", "1"}},
			{store.AuditFilter{Author: "Bob", Noun: "member"}, nil},
		} {
			if diff := cmp.Diff(names(tt.f), tt.want); diff != "" {
				t.Errorf("%+v (-got +want):\n%s", tt.f, diff)
			}
		}
		if _, err := s.Audits(t.Context(), store.AuditFilter{Cursor: "x"}); !errors.Is(err, store.ErrBadCursor) {
			t.Errorf("a strange cursor: %v", err)
		}
		now := time.Now()
		for _, tt := range []struct {
			bound time.Time
			want  int
		}{{now.Add(-time.Hour), 4}, {now.Add(time.Hour), 0}} {
			r := store.Retention{Now: now, Checks: now.Add(-time.Hour), Hours: now.Add(-time.Hour), Audit: tt.bound}
			if _, err := s.Tend(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if n := count(t, db, "audits"); n != tt.want {
				t.Errorf("%d lines are left with those before %v let go of, want %d", n, tt.bound, tt.want)
			}
		}
	})
}
