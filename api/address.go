package api

import (
	"net"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// requiredAgain says that a kept secret does not go to another address.
const requiredAgain = "is required again because the address changes"

// sameAddress reports whether two URLs lead to the same server: whether scheme, host and port are the same. A secret
// that is kept was given for one server, and is not sent to another because of an edit that does not repeat it: whoever
// can edit would otherwise read it there.
func sameAddress(a, b string) bool {
	return a == b || serverOf(a) != "" && serverOf(a) == serverOf(b)
}

// serverOf returns scheme, host and port of a URL in one spelling; empty when it has no host.
func serverOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	// As it is dialled: other ways of folding case take two names for one that DNS takes for two.
	host, err := httpguts.PunycodeHostPort(net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + asciiLower(host)
}

// asciiLower folds the case of what DNS folds.
func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
