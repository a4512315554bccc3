package api

import "net/url"

// redactURL returns raw with everything cut out that may be a key: all but scheme and host.
func redactURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	short := url.URL{Scheme: u.Scheme, Host: u.Host}
	if u.Path != "" || u.RawQuery != "" {
		return short.String() + "/…"
	}
	return short.String()
}
