package store_test

import (
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

func TestARoleMayDoWhatThoseBelowItMay(t *testing.T) {
	for _, tt := range []struct {
		has, needed store.Role
		want        bool
	}{
		{store.RoleViewer, store.RoleViewer, true},
		{store.RoleViewer, store.RoleEditor, false},
		{store.RoleViewer, store.RoleAdmin, false},
		{store.RoleEditor, store.RoleViewer, true},
		{store.RoleEditor, store.RoleEditor, true},
		{store.RoleEditor, store.RoleAdmin, false},
		{store.RoleAdmin, store.RoleEditor, true},
		{store.RoleAdmin, store.RoleAdmin, true},
		{"", store.RoleViewer, false},
		{"owner", store.RoleViewer, false},
		{store.RoleAdmin, "", false},
		{store.RoleAdmin, "owner", false},
		{"", "", false},
	} {
		if got := tt.has.May(tt.needed); got != tt.want {
			t.Errorf("%q may do what takes %q: %v, want %v", tt.has, tt.needed, got, tt.want)
		}
	}
}

func TestALineOfTheLogIsBounded(t *testing.T) {
	long := make([]byte, 10_000)
	for i := range long {
		long[i] = "ä"[i%2]
	}
	settings := map[string]string{}
	for i := range 100 {
		settings[string(rune('A'+i))] = string(long)
	}
	ctx := store.WithActor(t.Context(), store.Actor{Name: string(long), Kind: store.ActorMember, Address: "x\x00y"})
	a, ok := store.NewAudit(ctx, store.AuditCreate, nil, store.Channel{ID: "ch_1", Name: string(long), Settings: settings}, time.Now())
	if !ok || len(a.Author) > 500 || len(a.Name) > 500 || len(a.Changes) > 60 || store.CleanText(a.Author+a.Name+a.Address) != a.Author+a.Name+a.Address {
		t.Errorf("author of %d bytes, name of %d, %d changes, %v", len(a.Author), len(a.Name), len(a.Changes), ok)
	}
	for _, c := range a.Changes {
		if len(c.After) > 500 || store.CleanText(c.After) != c.After {
			t.Errorf("a change of %d bytes: %q", len(c.After), c.After)
		}
	}
	if _, ok := store.NewAudit(t.Context(), store.AuditCreate, nil, store.Channel{}, time.Now()); ok {
		t.Error("a line without an actor")
	}
}
