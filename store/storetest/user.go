package storetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/store"
)

func testUsers(t *testing.T, fresh func(t testing.TB) Database) {
	t.Run("the setup token makes the first user, once", func(t *testing.T) {
		s := fresh(t).open(t)
		old, current := []byte("old"), []byte("current")
		putSetupToken(t, s, old)
		putSetupToken(t, s, current)
		for hash, want := range map[string]bool{"old": false, "current": true, "": false} {
			if has, err := s.HasSetupToken(t.Context(), []byte(hash)); err != nil || has != want {
				t.Errorf("HasSetupToken(%q) = %v, %v, want %v", hash, has, err, want)
			}
		}
		given := store.User{Name: "Ömer", PasswordHash: "$argon2id$…", Role: store.RoleAdmin}
		_, err := s.CreateFirstUser(t.Context(), old, given)
		wantNotFound(t, "CreateFirstUser with the old token", err)
		if n, err := s.UserCount(t.Context()); err != nil || n != 0 {
			t.Errorf("UserCount = %d, %v, want 0", n, err)
		}
		u, err := s.CreateFirstUser(t.Context(), current, given)
		if err != nil {
			t.Fatal(err)
		}
		want := given
		want.ID, want.CreatedAt = u.ID, u.CreatedAt
		if diff := cmp.Diff(u, want); diff != "" || u.ID == "" || u.CreatedAt.IsZero() {
			t.Errorf("CreateFirstUser (-got +want):\n%s", diff)
		}
		for _, name := range []string{"Ömer", "öMER"} {
			if got, err := s.UserByName(t.Context(), name); err != nil || !cmp.Equal(got, u) {
				t.Errorf("UserByName(%q) = %+v, %v, want %+v", name, got, err, u)
			}
		}
		for _, name := range []string{"", "Omer", "\x00"} {
			_, err := s.UserByName(t.Context(), name)
			wantNotFound(t, "UserByName", err)
		}
		if n, err := s.UserCount(t.Context()); err != nil || n != 1 {
			t.Errorf("UserCount = %d, %v, want 1", n, err)
		}
		if has, err := s.HasSetupToken(t.Context(), current); err != nil || has {
			t.Errorf("HasSetupToken after use = %v, %v, want false", has, err)
		}
		_, err = s.CreateFirstUser(t.Context(), current, given)
		wantConflict(t, err, "user")
		wantConflict(t, s.PutSetupToken(t.Context(), []byte("another"), start), "user")
	})

	t.Run("of many who hold the setup token one comes first", func(t *testing.T) {
		s := fresh(t).open(t)
		putSetupToken(t, s, []byte("token"))
		var made atomic.Int64
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				_, err := s.CreateFirstUser(t.Context(), []byte("token"), store.User{Name: store.NewID("u"), Role: store.RoleAdmin})
				if err == nil {
					made.Add(1)
				} else if store.IsFailure(err) {
					t.Errorf("CreateFirstUser: %v", err)
				}
			})
		}
		wg.Wait()
		if n, err := s.UserCount(t.Context()); err != nil || n != 1 || made.Load() != 1 {
			t.Errorf("%d users, %v, %d made, want one", n, err, made.Load())
		}
	})

	t.Run("a session lasts until it expires or is deleted", func(t *testing.T) {
		db := fresh(t)
		s := db.open(t)
		putSetupToken(t, s, []byte("token"))
		u, err := s.CreateFirstUser(t.Context(), []byte("token"), store.User{Name: "a", Role: store.RoleAdmin})
		if err != nil {
			t.Fatal(err)
		}
		given := store.Session{TokenHash: []byte("one"), UserID: u.ID, CreatedAt: start, ExpiresAt: minutes(10)}
		create := func(session store.Session) {
			t.Helper()
			if err := s.CreateSession(t.Context(), session); err != nil {
				t.Fatalf("CreateSession: %v", err)
			}
		}
		create(given)
		given.LastSeenAt = given.CreatedAt
		got, gotUser, err := s.Session(t.Context(), given.TokenHash, minutes(9))
		if diff := cmp.Diff(got, given); diff != "" || err != nil {
			t.Errorf("Session (-got +want):\n%s%v", diff, err)
		}
		if diff := cmp.Diff(gotUser, u); diff != "" {
			t.Errorf("user of the session (-got +want):\n%s", diff)
		}
		_, _, err = s.Session(t.Context(), given.TokenHash, minutes(10))
		wantNotFound(t, "Session at its end", err)
		_, _, err = s.Session(t.Context(), []byte("none"), start)
		wantNotFound(t, "Session of another token", err)

		create(store.Session{TokenHash: []byte("two"), UserID: u.ID, CreatedAt: minutes(20), ExpiresAt: minutes(30)})
		if n := count(t, db, "sessions"); n != 1 {
			t.Errorf("%d sessions are kept, want the one that has not expired", n)
		}
		for range 2 { // the second time there is none
			if err := s.DeleteSession(t.Context(), []byte("two")); err != nil {
				t.Errorf("DeleteSession: %v", err)
			}
		}
		_, _, err = s.Session(t.Context(), []byte("two"), minutes(21))
		wantNotFound(t, "Session that was deleted", err)
		wantNotFound(t, "CreateSession of nobody", s.CreateSession(t.Context(), store.Session{TokenHash: []byte("x"), UserID: "usr_none"}))
	})

	t.Run("a token works until it is revoked", func(t *testing.T) {
		s := fresh(t).open(t)
		var tokens []store.Token
		for _, name := range []string{"first", "second"} {
			token, err := s.CreateToken(t.Context(), store.Token{Name: name, Hash: []byte(name), Role: store.RoleAdmin})
			if err != nil {
				t.Fatal(err)
			}
			if token.ID == "" || token.CreatedAt.IsZero() || token.LastUsedAt != nil || token.RevokedAt != nil {
				t.Errorf("CreateToken = %+v, want it named, dated and unused", token)
			}
			tokens = append(tokens, token)
		}
		use := func(now, want time.Time) {
			t.Helper()
			got, err := s.UseToken(t.Context(), []byte("first"), now)
			if err != nil || got.LastUsedAt == nil || !got.LastUsedAt.Equal(want) || got.ID != tokens[0].ID {
				t.Errorf("UseToken at %v = %+v, %v, want it used at %v", now, got, err, want)
			}
		}
		minute := start.Truncate(time.Minute)
		use(start, minute)
		use(start.Add(time.Second), minute)
		use(minutes(1), minute.Add(time.Minute))
		use(start, minute.Add(time.Minute)) // never back
		_, err := s.UseToken(t.Context(), []byte("none"), start)
		wantNotFound(t, "UseToken of another", err)

		for _, at := range []time.Time{minutes(5), minutes(6)} { // the first time counts
			if err := s.RevokeToken(t.Context(), tokens[0].ID, at); err != nil {
				t.Errorf("RevokeToken: %v", err)
			}
		}
		for _, id := range []string{"tok_none", "\x00"} {
			wantNotFound(t, "RevokeToken", s.RevokeToken(t.Context(), id, start))
		}
		_, err = s.UseToken(t.Context(), []byte("first"), minutes(7))
		wantNotFound(t, "UseToken after it was revoked", err)

		want := []store.Token{tokens[1], tokens[0]}
		used, revoked := minute.Add(time.Minute), minutes(5)
		want[1].LastUsedAt, want[1].RevokedAt = &used, &revoked
		got, err := s.Tokens(t.Context())
		if diff := cmp.Diff(got, want); diff != "" || err != nil {
			t.Errorf("Tokens (-got +want):\n%s%v", diff, err)
		}
	})
}

func putSetupToken(t testing.TB, s store.Store, hash []byte) {
	t.Helper()
	if err := s.PutSetupToken(t.Context(), hash, start); err != nil {
		t.Fatalf("PutSetupToken: %v", err)
	}
}
