package store_test

import (
	"errors"
	"testing"

	"github.com/rollcallhq/rollcall/store"
)

func TestCursorsComeBack(t *testing.T) {
	at, id, err := store.ReadTimeCursor("checks", store.TimeCursor("checks", minutes(1), "chk_a"))
	if err != nil || !at.Equal(minutes(1)) || id != "chk_a" {
		t.Errorf("ReadTimeCursor = %v, %q, %v", at, id, err)
	}
	name, err := store.ReadNameCursor("endpoints", store.NameCursor("endpoints", `ä "`))
	if err != nil || name != `ä "` {
		t.Errorf("ReadNameCursor = %q, %v", name, err)
	}
	if _, _, err := store.ReadTimeCursor("incidents", store.TimeCursor("checks", minutes(1), "chk_a")); !errors.Is(err, store.ErrBadCursor) {
		t.Errorf("a cursor of another list: error %v, want ErrBadCursor", err)
	}
}

func FuzzReadCursor(f *testing.F) {
	f.Add(store.TimeCursor("checks", start, "chk_a"))
	f.Add(store.NameCursor("endpoints", "a"))
	f.Add("e30")
	f.Fuzz(func(t *testing.T, cursor string) {
		if _, _, err := store.ReadTimeCursor("checks", cursor); err != nil && !errors.Is(err, store.ErrBadCursor) {
			t.Errorf("ReadTimeCursor(%q): error %v, want ErrBadCursor", cursor, err)
		}
		if _, err := store.ReadNameCursor("endpoints", cursor); err != nil && !errors.Is(err, store.ErrBadCursor) {
			t.Errorf("ReadNameCursor(%q): error %v, want ErrBadCursor", cursor, err)
		}
	})
}

func TestPageOf(t *testing.T) {
	last := func(s string) string { return "after " + s }
	for _, test := range []struct {
		found []string
		want  int
		next  string
	}{
		{nil, 0, ""},
		{[]string{"a", "b"}, 2, ""},
		{[]string{"a", "b", "c"}, 2, "after b"},
	} {
		p := store.PageOf(test.found, 2, last)
		if len(p.Items) != test.want || p.Next != test.next {
			t.Errorf("PageOf(%q, 2) = %q, next %q, want %d items, next %q", test.found, p.Items, p.Next, test.want, test.next)
		}
	}
}
