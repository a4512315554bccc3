package main

import (
	"net/url"

	"golang.org/x/net/http/httpproxy"
)

// proxyFrom returns which proxy leads to a URL, by the variables that other programs read too: HTTP_PROXY, HTTPS_PROXY
// and NO_PROXY, in either case. Loopback is never proxied. It is nil where there is none.
func proxyFrom(std stdio) func(*url.URL) (*url.URL, error) {
	either := func(upper, lower string) string {
		if value, ok := std.env(upper); ok {
			return value
		}
		value, _ := std.env(lower)
		return value
	}
	config := httpproxy.Config{
		HTTPProxy:  either("HTTP_PROXY", "http_proxy"),
		HTTPSProxy: either("HTTPS_PROXY", "https_proxy"),
		NoProxy:    either("NO_PROXY", "no_proxy"),
	}
	if config.HTTPProxy == "" && config.HTTPSProxy == "" {
		return nil
	}
	return config.ProxyFunc()
}
