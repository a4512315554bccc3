package main

import (
	"errors"
	"net/url"
	"strings"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/store"
)

// oidcFlags are how `rollcall serve` was told of a provider of identities.
type oidcFlags struct {
	issuer, clientID string
	clientSecret     string // a secret: better in the environment, where no list of processes shows it
	role, domains    string
}

func (o *oidcFlags) register(fs *flagSet) {
	fs.StringVar(&o.issuer, "oidc-issuer", "", "`URL` of a provider of identities (OpenID Connect) by which people may log in, like https://accounts.google.com")
	fs.StringVar(&o.clientID, "oidc-client-id", "", "`id` that the provider knows this service by")
	fs.StringVar(&o.clientSecret, "oidc-client-secret", "", "`secret` that the provider gave this service; better in ROLLCALL_OIDC_CLIENT_SECRET")
	fs.StringVar(&o.role, "oidc-role", string(store.RoleViewer), "`role` of who logs in by the provider for the first time: viewer, editor or admin")
	fs.StringVar(&o.domains, "oidc-domains", "", "`domains` of email addresses that may log in, separated by commas (default everybody whom the provider knows)")
}

// read returns the provider; nil when there is none. No mistake repeats the secret.
func (o *oidcFlags) read() (*api.OIDC, []error) {
	if o.issuer == "" && o.clientID == "" && o.clientSecret == "" && o.domains == "" {
		return nil, nil
	}
	var mistakes []error
	if u, err := url.Parse(o.issuer); err != nil || !isWebURL(o.issuer) || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		mistakes = append(mistakes, errors.New("--oidc-issuer must be an http or https URL like https://accounts.example.com"))
	}
	if o.clientID == "" {
		mistakes = append(mistakes, errors.New("--oidc-client-id is missing: the provider gives one when you register this service there"))
	}
	role := store.Role(o.role)
	if !role.May(store.RoleViewer) {
		mistakes = append(mistakes, errors.New("--oidc-role must be viewer, editor or admin"))
	}
	domains, wrong := readDomains(o.domains)
	if mistakes = append(mistakes, wrong...); len(mistakes) > 0 {
		return nil, mistakes
	}
	return &api.OIDC{Issuer: o.issuer, ClientID: o.clientID, ClientSecret: o.clientSecret, Role: role, Domains: domains}, nil
}

func readDomains(list string) (domains []string, mistakes []error) {
	if list == "" {
		return nil, nil
	}
	for domain := range strings.SplitSeq(list, ",") {
		domain = strings.TrimSpace(domain)
		if domain == "" || strings.ContainsAny(domain, "@ /:*") {
			return nil, []error{errors.New("--oidc-domains must be domains like example.com, separated by commas")}
		}
		domains = append(domains, domain)
	}
	return domains, nil
}
