package main

import (
	"flag"
	"strings"

	"github.com/rollcallhq/rollcall/api"
)

// told are the flags of `rollcall serve` whose values may be shown to admins. Of the others, which hold passwords and keys or may,
// the page says only whether they are given.
var told = map[string]bool{
	"listen": true, "location": true, "allow-private": true, "demo": true, "public-url": true, "concurrency": true, "per-host": true,
	"per-location": true, "retention": true, "trusted-proxies": true, "log-format": true, "spool": true, "spool-limit": true,
	"reference": true, "mail-from": true, "oidc-issuer": true, "oidc-client-id": true, "oidc-role": true, "oidc-domains": true,
}

// shortDuration leaves out the zeros with which package time ends a duration. It returns other values as they are.
func shortDuration(value string) string {
	if rest, ok := strings.CutSuffix(value, "m0s"); ok {
		value = rest + "m"
	}
	if rest, ok := strings.CutSuffix(value, "h0m"); ok {
		value = rest + "h"
	}
	return value
}

// settings returns how the service was asked to run: every flag, in the order of their names, and where its value came from.
func (f *flagSet) settings() []api.Setting {
	given := map[string]bool{}
	f.Visit(func(fl *flag.Flag) { given[fl.Name] = true })
	var all []api.Setting
	f.VisitAll(func(fl *flag.Flag) {
		s := api.Setting{Flag: "--" + fl.Name, Variable: envName(fl.Name), Usage: fl.Usage, Origin: api.OriginDefault}
		if _, ok := f.std.env(s.Variable); ok {
			s.Origin = api.OriginEnvironment
		}
		if given[fl.Name] {
			s.Origin = api.OriginFlag
		}
		if told[fl.Name] {
			s.Value = shortDuration(fl.Value.String())
		} else {
			s.Secret = true
		}
		all = append(all, s)
	})
	return all
}
