package api_test

import (
	"testing"

	"github.com/rollcallhq/rollcall/api"
)

func TestSameAddressIsWhatIsDialled(t *testing.T) {
	const known = "https://api.example.com/mcp"
	for url, want := range map[string]bool{
		"https://api.example.com/other?x=1": true,
		"https://API.Example.COM:443/mcp":   true,
		"http://api.example.com/mcp":        false,
		"https://api.example.com:8443/mcp":  false,
		"https://api.example.com./mcp":      false,
		"https://ap\u0130.example.com/mcp":  false, // folded to i by Unicode, another name in DNS
		"https://api.ex\u0430mple.com/mcp":  false, // a Cyrillic letter
		"https://elsewhere.example/mcp":     false,
		"nonsense":                          false,
	} {
		if got := api.SameAddress(known, url); got != want {
			t.Errorf("SameAddress(%s, %s) = %v, want %v", known, url, got, want)
		}
	}
}
