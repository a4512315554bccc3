package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/store"
)

func TestAProviderOfIdentitiesIsReadFromFlags(t *testing.T) {
	for _, tt := range []struct {
		flags    oidcFlags
		want     *api.OIDC
		mistakes int
	}{
		{flags: oidcFlags{role: "viewer"}},
		{
			flags: oidcFlags{issuer: "https://id.example", clientID: "x", clientSecret: "HUSH", role: "editor", domains: "example.com, example.org"},
			want: &api.OIDC{
				Issuer: "https://id.example", ClientID: "x", ClientSecret: "HUSH", Role: store.RoleEditor, Domains: []string{"example.com", "example.org"},
			},
		},
		{flags: oidcFlags{clientSecret: "HUSH", role: "owner", domains: "@example.com"}, mistakes: 4},
		{flags: oidcFlags{issuer: "https://me:HUSH@id.example", clientID: "x", role: "viewer"}, mistakes: 1},
	} {
		got, mistakes := tt.flags.read()
		if diff := cmp.Diff(got, tt.want); diff != "" || len(mistakes) != tt.mistakes {
			t.Errorf("%+v: mistakes %v, want %d; (-got +want):\n%s", tt.flags, mistakes, tt.mistakes, diff)
		}
	}
}
