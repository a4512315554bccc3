package web_test

import (
	"testing"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
)

// A server may change hundreds of things at once. The page names the first and counts the rest.
func TestAPageNamesTheFirstChanges(t *testing.T) {
	for _, c := range []struct{ changes, shown, more int }{{0, 0, 0}, {20, 20, 0}, {201, 20, 181}} {
		contract := web.Contract{Changes: make([]probe.Change, c.changes)}
		if got := len(contract.ShownChanges()); got != c.shown || contract.MoreChanges() != c.more {
			t.Errorf("of %d changes %d are named and %d counted, want %d and %d", c.changes, got, contract.MoreChanges(), c.shown, c.more)
		}
	}
}
