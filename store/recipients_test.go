package store_test

import (
	"testing"

	"github.com/rollcallhq/rollcall/store"
)

func TestOneAddressIsNeverTwo(t *testing.T) {
	for _, list := range []string{
		`"victim@mail.example, me"@evil.example`, `"\"victim@mail.example> ORCPT=rfc822;foo1\""@evil.example`, `x@[127.0.0.1]`, `"a b"@c.example`,
	} {
		if got, err := store.Recipients(list); err == nil {
			t.Errorf("%s is taken for %q, want it refused", list, got)
		}
	}
	got, err := store.Recipients(`Ada <ada@mail.example>, ops+night@mail.example`)
	if err != nil || len(got) != 2 || got[0] != "ada@mail.example" || got[1] != "ops+night@mail.example" {
		t.Errorf("two usual addresses are %q, %v", got, err)
	}
}
