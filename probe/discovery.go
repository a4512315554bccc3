package probe

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Where metadata lies (RFC 9728 §3.1, RFC 8414 §3.1, OpenID Connect Discovery §4.1).
const (
	wellKnownResource = "/.well-known/oauth-protected-resource"
	wellKnownServer   = "/.well-known/oauth-authorization-server"
	wellKnownOpenID   = "/.well-known/openid-configuration"
)

// resourceMetadata is what an endpoint says of who may use it (RFC 9728 §2).
type resourceMetadata struct {
	resource string
	servers  []string
	scopes   []string
}

// discoverServer finds out where tokens for the endpoint are had, in the order of the authorization part of MCP
// 2025-11-25: the metadata of the endpoint is where its 401 says, else where RFC 9728 puts it, else at its root; that
// names the authorization server, whose metadata names the token endpoint. An endpoint without metadata may be its own
// authorization server, as in MCP 2025-03-26.
func (c *conversation) discoverServer(ctx context.Context, refused http.Header) (tokenServer, *problem) {
	o := c.target.Options.OAuth
	challenge := bearerChallenge(refused)
	metadata, p := c.resourceMetadata(ctx, challenge.params["resource_metadata"])
	if p != nil {
		return tokenServer{}, p
	}
	issuer := originOf(c.url)
	if len(metadata.servers) > 0 {
		issuer = metadata.servers[0]
	}
	server, p := c.serverMetadata(ctx, issuer)
	if p != nil {
		return tokenServer{}, p
	}
	s := tokenServer{url: server.text("token_endpoint"), resource: o.Resource, scopes: o.Scopes}
	if s.resource == "" {
		s.resource = metadata.resource
	}
	if s.scopes == nil {
		s.scopes = strings.Fields(challenge.params["scope"])
	}
	if len(s.scopes) == 0 {
		s.scopes = metadata.scopes
	}
	listed, _ := server.get("token_endpoint_auth_methods_supported")
	if s.styles = o.styles(texts(listed)); listed == nil && o.ClientSecret != "" {
		s.styles = s.styles[:1] // RFC 8414 §2: a server that lists none takes client_secret_basic
	}
	if u, err := oauthURL(s.url); err == nil && u.Scheme != "https" && c.url.Scheme == "https" {
		return s, authServerProblem(0, "the authorization server %s names a token endpoint without https", clip(issuer, 200))
	}
	return s, nil
}

// resourceMetadata fetches the metadata of the endpoint: from the place that a 401 named, or else from the usual ones.
// Without any it is empty.
func (c *conversation) resourceMetadata(ctx context.Context, named string) (resourceMetadata, *problem) {
	if named != "" {
		where, err := oauthURL(named)
		if err != nil {
			return resourceMetadata{}, c.undiscovered(stepResourceMetadata, "the 401 names resource metadata at no URL that can be asked")
		}
		d, p := c.fetchMetadata(ctx, stepResourceMetadata, where)
		if p != nil {
			return resourceMetadata{}, p
		}
		object, ok := d.object()
		if !ok {
			return resourceMetadata{}, authServerProblem(d.status, "the 401 names resource metadata at %s, which answers %s", RedactURL(named), d.description())
		}
		return c.readResource(object)
	}
	for _, where := range resourcePlaces(c.url) {
		d, p := c.fetchMetadata(ctx, stepResourceMetadata, where)
		if p != nil {
			return resourceMetadata{}, p
		}
		if object, ok := d.object(); ok {
			return c.readResource(object)
		}
	}
	return resourceMetadata{}, nil
}

// undiscovered records a step that could not be sent.
func (c *conversation) undiscovered(step, message string) *problem {
	watch := newStopwatch()
	c.begun(question{step: step, method: http.MethodGet}, watch)
	return authServerProblem(0, "%s", message)
}

// readResource reads the metadata of the endpoint. What it is about must be the endpoint (RFC 9728 §3.3), or what the
// endpoint is part of: MCP lets a server speak for its whole origin.
func (c *conversation) readResource(o object) (resourceMetadata, *problem) {
	servers, _ := o.get("authorization_servers")
	scopes, _ := o.get("scopes_supported")
	m := resourceMetadata{resource: o.text("resource"), servers: texts(servers), scopes: texts(scopes)}
	m.scopes = slices.DeleteFunc(m.scopes, func(s string) bool { return strings.ContainsFunc(s, notInScope) || len(s) > maxScope })
	switch about, err := oauthURL(m.resource); {
	case m.resource == "":
		return m, authServerProblem(http.StatusOK, "the resource metadata does not say what it is about (resource is missing)")
	case err != nil || !partOf(c.url, about):
		return m, authServerProblem(http.StatusOK, "the resource metadata is about %s and not about this endpoint", RedactURL(m.resource))
	case len(m.servers) == 0:
		return m, authServerProblem(http.StatusOK, "the resource metadata names no authorization server")
	}
	return m, nil
}

// partOf reports whether whole is u or leads there: the same origin, and a beginning of its path.
func partOf(u, whole *url.URL) bool {
	if !strings.EqualFold(originOf(u), originOf(whole)) {
		return false
	}
	path := strings.TrimSuffix(whole.EscapedPath(), "/")
	rest, ok := strings.CutPrefix(u.EscapedPath(), path)
	return ok && (rest == "" || rest[0] == '/')
}

// originOf returns scheme, host and port of the HTTP behind u, without a port that goes without saying.
func originOf(u *url.URL) string {
	scheme := strings.ToLower(u.Scheme)
	if plain := httpScheme(scheme); plain != "" {
		scheme = plain
	}
	host := strings.ToLower(u.Host)
	if u.Port() == map[string]string{"http": "80", "https": "443"}[scheme] {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return scheme + "://" + host
}

// resourcePlaces returns where the metadata of an endpoint may lie: with its path inserted, and at the root.
func resourcePlaces(u *url.URL) []*url.URL {
	root, err := url.Parse(originOf(u))
	if err != nil {
		return nil
	}
	root.Path = wellKnownResource
	if strings.Trim(u.Path, "/") == "" {
		return []*url.URL{root}
	}
	inserted := *root
	inserted.Path, inserted.RawPath = wellKnownResource+u.Path, wellKnownResource+u.EscapedPath()
	return []*url.URL{&inserted, root}
}

// serverPlaces returns where the metadata of an authorization server may lie, in the order of MCP 2025-11-25.
func serverPlaces(issuer *url.URL) []*url.URL {
	at := func(path string) *url.URL {
		u := url.URL{Scheme: issuer.Scheme, Host: issuer.Host, Path: path}
		return &u
	}
	path := strings.TrimSuffix(issuer.Path, "/")
	if path == "" {
		return []*url.URL{at(wellKnownServer), at(wellKnownOpenID)}
	}
	return []*url.URL{at(wellKnownServer + path), at(wellKnownOpenID + path), at(path + wellKnownOpenID)}
}

// serverMetadata fetches the metadata of an authorization server. It must be by whom it is asked of (RFC 8414 §3.3).
func (c *conversation) serverMetadata(ctx context.Context, issuer string) (object, *problem) {
	u, err := oauthURL(issuer)
	if err != nil || u.RawQuery != "" {
		return nil, c.undiscovered(stepServerMetadata, "the resource metadata names an authorization server at no URL that can be asked")
	}
	var last *problem
	for _, where := range serverPlaces(u) {
		d, p := c.fetchMetadata(ctx, stepServerMetadata, where)
		if p != nil {
			return nil, p
		}
		o, ok := d.object()
		switch {
		case !ok && last == nil:
			last = authServerProblem(d.status, "the authorization server %s has no metadata: %s answers %s", u.Host, where.Path, d.description())
		case !ok:
		case strings.TrimSuffix(o.text("issuer"), "/") != strings.TrimSuffix(issuer, "/"):
			last = authServerProblem(d.status, "the metadata of the authorization server %s names another issuer: %s", RedactURL(issuer), RedactURL(o.text("issuer")))
		case o.text("token_endpoint") == "":
			return nil, authServerProblem(d.status, "the metadata of the authorization server %s names no token endpoint", u.Host)
		default:
			return o, nil
		}
	}
	return nil, last
}

// fetchMetadata asks for a document, without any credentials.
func (c *conversation) fetchMetadata(ctx context.Context, step string, where *url.URL) (fetched, *problem) {
	return c.fetch(ctx, step, getRequest(where))
}

func getRequest(where *url.URL) *http.Request {
	return &http.Request{Method: http.MethodGet, URL: where, Host: where.Host, Header: http.Header{}, Proto: "HTTP/1.1"}
}

// object returns the JSON object that an answer is.
func (d fetched) object() (object, bool) {
	if d.status != http.StatusOK {
		return nil, false
	}
	o, err := readObject(d.body)
	return o, err == nil
}

// description says what came in place of metadata.
func (d fetched) description() string {
	if d.status != http.StatusOK {
		return statusWords(d.status)
	}
	return orNone(mediaType(d.header)) + " that is no JSON object"
}

// maxTexts bounds a list in metadata.
const maxTexts = 100

// texts returns the strings in a JSON array, of its first maxTexts items.
func texts(raw []byte) []string {
	found, _ := items(raw, maxTexts)
	var list []string
	for _, item := range found {
		var s string
		if json.Unmarshal(item, &s) == nil && s != "" {
			list = append(list, s)
		}
	}
	return list
}
