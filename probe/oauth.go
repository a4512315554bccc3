package probe

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// The steps in which an access token is had.
const (
	stepResourceMetadata = "oauth/resource-metadata"
	stepServerMetadata   = "oauth/server-metadata"
	stepToken            = "token"
)

// Bounds on what has to do with access tokens.
const (
	maxMetadata   = 64 << 10         // of one answer of an authorization server, or of metadata
	maxToken      = 16 << 10         // servers refuse header lines that are longer
	maxScopes     = 50               // of an OAuth
	maxScope      = 200              // bytes of one
	fetchPatience = 10 * time.Second // of one request to somebody else than the endpoint
	tokenMargin   = 30 * time.Second // a token is not used in its last moments: the check has to end before it does
	tokenUnsaid   = time.Hour        // how long a token is used whose server does not say when it ends
	maxGrants     = 1024             // remembered by one Prober
)

// access is how far a check has come in getting an access token.
type access struct {
	authorization string   // value of the Authorization header; empty while there is none
	tried         bool     // a token was asked for in this check: one that is refused is not replaced once more
	problem       *problem // why there is none
	step          int      // of the problem
}

// grant is an access token, and where it was had.
type grant struct {
	server tokenServer
	token  string
	until  time.Time // when it is no longer to be used; the server may be remembered for longer
}

// tokenServer is where tokens for an endpoint are had.
type tokenServer struct {
	url      string
	styles   []oauth2.AuthStyle // in which the client may identify itself, to be tried in this order
	resource string             // sent as the resource indicator; empty sends none
	scopes   []string
}

// problems returns everything that is wrong with the OAuth settings of t, without repeating a secret.
func (o *OAuth) problems(t *Target) []Problem {
	if o == nil {
		return nil
	}
	var problems []Problem
	add := func(field, format string, args ...any) {
		problems = append(problems, Problem{"oauth" + field, fmt.Sprintf(format, args...)})
	}
	switch scheme := scheme(t.URL); {
	case t.Command != nil:
		add("", "goes with a url, not with a command: a process finds its credentials in its environment")
	case t.URL != "" && !slices.Contains([]string{"http", "https", "ws", "wss"}, scheme):
		add("", "goes with http, https, ws and wss only: nothing else carries an Authorization header")
	}
	if slices.ContainsFunc(t.Headers, func(h Header) bool { return strings.EqualFold(h.Name, "Authorization") }) {
		add("", "sets the Authorization header, which headers set too: leave one of them out")
	}
	if o.ClientID == "" {
		add(".client_id", "is required")
	}
	if len(o.ClientID) > maxToken || len(o.ClientSecret) > maxToken {
		add("", "holds a client id or secret that is longer than %d bytes", maxToken)
	}
	if msg := tokenURLProblem(o.TokenURL); o.TokenURL != "" && msg != "" {
		add(".token_url", "%s", msg)
	}
	if u, err := url.Parse(o.Resource); o.Resource != "" && (err != nil || !u.IsAbs() || u.Fragment != "" || len(o.Resource) > maxURL) {
		add(".resource", "is not an absolute URI without a fragment (RFC 8707 §2)")
	}
	bad := func(s string) bool { return s == "" || len(s) > maxScope || strings.ContainsFunc(s, notInScope) }
	if len(o.Scopes) > maxScopes || slices.ContainsFunc(o.Scopes, bad) {
		add(".scopes", "must be at most %d words without spaces or quotes (RFC 6749 §3.3)", maxScopes)
	}
	return problems
}

func notInScope(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }

// tokenURLProblem says why raw cannot be where tokens are had.
func tokenURLProblem(raw string) string {
	if _, err := oauthURL(raw); err != nil {
		return "is not a URL like https://auth.example.com/oauth/token, without a user name or a fragment"
	}
	return ""
}

var errBadURL = errors.New("no URL for a probe")

// oauthURL reads the URL of a party to OAuth.
func oauthURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || len(raw) > maxURL || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return nil, errBadURL
	}
	return u, nil
}

// authorize gets an access token before the first request of a check, where the target wants one and it is known where
// to get it. Otherwise the endpoint's first 401 says where: see withToken.
//
//	authorize | withToken
//	└─ obtain
//	   ├─ findServer: resource metadata → server metadata     unless the target names the token endpoint
//	   └─ requestToken                                        kept for further checks: grants
func (c *conversation) authorize(ctx context.Context) *Failure {
	o := c.target.Options.OAuth
	if o == nil {
		return nil
	}
	known := c.prober.grants.find(c.grantKey())
	if known != nil && c.started.Before(known.until) {
		c.bear(known.token)
		return nil
	}
	if o.TokenURL == "" && known == nil && !c.overStream() {
		return nil
	}
	c.obtain(ctx, nil, known)
	if p := c.access.problem; p != nil {
		return &Failure{Step: c.result.Steps[c.access.step].Name, Class: p.class, Code: p.code, Message: p.message}
	}
	return nil
}

// withToken asks once more with a fresh access token, where a was refused for want of one or with an old one.
func (c *conversation) withToken(ctx context.Context, a answer, again func() answer) answer {
	if a.status != http.StatusUnauthorized || c.target.Options.OAuth == nil {
		return a
	}
	if c.mayRenew() {
		c.obtain(ctx, a.header, nil)
		if c.access.problem == nil {
			return again()
		}
	}
	if c.access.problem != nil { // which is why the endpoint was asked without a token
		a.step, a.problem = c.access.step, c.access.problem
	}
	return a
}

// mayRenew reports whether a 401 is answered with another access token.
func (c *conversation) mayRenew() bool {
	return c.target.Options.OAuth != nil && !c.access.tried && c.atHome(c.url)
}

// atHome reports whether where lies at the origin that the target names. No other gets a token, or is asked where tokens
// are had: an agent's card may lead anywhere, and the answer would decide who is sent the client secret.
func (c *conversation) atHome(where *url.URL) bool {
	home, err := url.Parse(c.target.URL)
	return err == nil && originOf(where) == originOf(home)
}

// bearer returns the value of the Authorization header for a request to where; empty for none.
func (c *conversation) bearer(where *url.URL) string {
	if c.access.authorization == "" || !c.atHome(where) {
		return ""
	}
	return c.access.authorization
}

// bear makes every further request carry token.
func (c *conversation) bear(token string) {
	c.secrets.add(token)
	c.access.authorization = "Bearer " + token
}

// obtain gets an access token and remembers it. The header is that of a 401 of the endpoint, nil when there was none;
// known is what an earlier check found out, if anything.
func (c *conversation) obtain(ctx context.Context, refused http.Header, known *grant) {
	began := time.Now()
	defer func() { c.pathStart += time.Since(began) }() // the time that this takes is not the endpoint's
	c.access = access{tried: true}
	key := c.grantKey()
	c.prober.grants.forget(key)
	server, p := c.findServer(ctx, refused, known)
	var g *grant
	if p == nil {
		g, p = c.requestToken(ctx, server)
	}
	if p != nil {
		c.blame(p)
		return
	}
	c.prober.grants.keep(key, g, c.started)
	c.bear(g.token)
}

// blame makes p the finding of the last step, and what every further 401 of the check means.
func (c *conversation) blame(p *problem) {
	if len(c.result.Steps) == 0 { // refused before anything was sent
		c.result.Steps = append(c.result.Steps, Step{Name: stepToken, Method: http.MethodPost, Start: time.Since(c.started)})
	}
	p.message = c.text(p.message, MaxMessage)
	c.access.step, c.access.problem = len(c.result.Steps)-1, p
	step := &c.result.Steps[c.access.step]
	step.Class, step.Code, step.Message = p.class, p.code, p.message
}

// authServerProblem says why no token can be had that is not the endpoint's fault.
func authServerProblem(code int, format string, args ...any) *problem {
	return &problem{ClassAuthServer, code, fmt.Sprintf(format, args...)}
}

// findServer returns where tokens for the endpoint are had: as the target says, as an earlier check found out, or as
// the endpoint's metadata says.
func (c *conversation) findServer(ctx context.Context, refused http.Header, known *grant) (tokenServer, *problem) {
	o := c.target.Options.OAuth
	switch {
	case o.TokenURL != "":
		s := tokenServer{url: o.TokenURL, styles: o.styles(nil), resource: o.Resource, scopes: o.Scopes}
		if s.resource == "" && (c.target.Kind == KindMCP || c.target.Kind == KindAuto) { // which requires it
			s.resource = resourceOf(c.url)
		}
		return s, nil
	case known != nil:
		return known.server, nil
	default:
		return c.discoverServer(ctx, refused)
	}
}

// resourceOf returns the URL of an endpoint as the identifier of a resource (RFC 8707 §2, and the authorization part of
// MCP 2025-11-25): without query and fragment. It is empty when that would tell the authorization server a key.
func resourceOf(u *url.URL) string {
	if len(urlSecrets(u.String())) > 0 {
		return ""
	}
	identifier := url.URL{Scheme: strings.ToLower(u.Scheme), Host: strings.ToLower(u.Host), Path: u.Path, RawPath: u.RawPath}
	return strings.TrimSuffix(identifier.String(), "/")
}

// styles returns how the client identifies itself, given what the metadata of the server lists (RFC 8414 §2): in the
// header where it may, else in the body. A server that lists nothing takes the header (RFC 6749 §2.3.1), and is tried
// with the body where no metadata was read.
func (o *OAuth) styles(listed []string) []oauth2.AuthStyle {
	const header, body = oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams
	switch {
	case o.ClientSecret == "":
		return []oauth2.AuthStyle{body}
	case listed == nil:
		return []oauth2.AuthStyle{header, body}
	case slices.Contains(listed, "client_secret_basic"):
		return []oauth2.AuthStyle{header}
	case slices.Contains(listed, "client_secret_post"):
		return []oauth2.AuthStyle{body}
	default:
		return nil
	}
}

// requestToken asks the token endpoint for a token (RFC 6749 §4.4.2).
func (c *conversation) requestToken(ctx context.Context, s tokenServer) (*grant, *problem) {
	where, err := oauthURL(s.url)
	if err != nil {
		return nil, authServerProblem(0, "the metadata of the authorization server names no token endpoint that can be asked")
	}
	o := c.target.Options.OAuth
	var failed *problem
	for _, style := range s.styles {
		config := clientcredentials.Config{ClientID: o.ClientID, ClientSecret: o.ClientSecret, TokenURL: s.url, Scopes: s.scopes, AuthStyle: style}
		if s.resource != "" {
			config.EndpointParams = url.Values{"resource": {s.resource}}
		}
		trip := &tokenTrip{c: c}
		client := &http.Client{Transport: trip, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
		if err == nil && trip.problem == nil {
			s.styles = []oauth2.AuthStyle{style}
			return c.granted(s, where, token)
		}
		failed = explainToken(where, trip, err)
		if trip.status != http.StatusUnauthorized && trip.status != http.StatusBadRequest {
			break // another way to say who we are would change nothing
		}
	}
	if failed == nil {
		return nil, authServerProblem(0, "the authorization server %s takes neither client_secret_basic nor client_secret_post", where.Host)
	}
	return nil, failed
}

// granted judges a token as it came.
func (c *conversation) granted(s tokenServer, from *url.URL, token *oauth2.Token) (*grant, *problem) {
	switch kind := token.Type(); {
	case !strings.EqualFold(kind, "Bearer"):
		return nil, authServerProblem(http.StatusOK, "the token endpoint %s issues tokens of type %s, where a probe can only bear them", from.Host, clip(kind, 40))
	case len(token.AccessToken) > maxToken || !httpguts.ValidHeaderFieldValue(token.AccessToken):
		return nil, authServerProblem(http.StatusOK, "the token endpoint %s issues tokens that do not fit into a header", from.Host)
	}
	until := c.started.Add(tokenUnsaid)
	if !token.Expiry.IsZero() {
		until = token.Expiry.Add(-tokenMargin)
	}
	return &grant{s, token.AccessToken, until}, nil
}

// refusals are the errors of a token endpoint (RFC 6749 §5.2, RFC 8707 §2) that are about what we were given.
var refusals = []string{"invalid_client", "unauthorized_client", "invalid_scope", "invalid_target", "access_denied"}

// explainToken says why the token endpoint gave no token.
func explainToken(where *url.URL, trip *tokenTrip, err error) *problem {
	if trip.problem != nil {
		return trip.problem
	}
	subject := "the token endpoint " + where.Host
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || refused.ErrorCode == "" {
		switch {
		case trip.status == http.StatusUnauthorized:
			return &problem{ClassCredentialRejected, trip.status, subject + " does not accept the client: 401"}
		case trip.status >= 200 && trip.status < 300:
			return authServerProblem(trip.status, "%s answered %s without a token", subject, orNone(trip.media))
		default:
			return authServerProblem(trip.status, "%s answered %s%s", subject, statusWords(trip.status), after(trip.words))
		}
	}
	words := clip(refused.ErrorCode, 60) + after(tidy(refused.ErrorDescription, 200))
	if slices.Contains(refusals, refused.ErrorCode) {
		return &problem{ClassCredentialRejected, trip.status, subject + " refuses the client: " + words}
	}
	return authServerProblem(trip.status, "%s gives no token: %s", subject, words)
}

// tokenTrip is how the library that speaks OAuth reaches the token endpoint: as everything else here is reached.
type tokenTrip struct {
	c       *conversation
	problem *problem // nothing came back
	status  int
	media   string
	words   string // of a body that may be shown
}

// RoundTrip sends a token request as a step of the check.
func (t *tokenTrip) RoundTrip(req *http.Request) (*http.Response, error) {
	d, p := t.c.fetch(req.Context(), stepToken, req)
	if p != nil {
		t.problem = p
		return nil, p
	}
	t.status, t.media = d.status, mediaType(d.header)
	if d.status >= 300 {
		t.words = bodyWords(d.body)
	}
	return &http.Response{
		Status: statusWords(d.status), StatusCode: d.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: d.header, Body: io.NopCloser(bytes.NewReader(d.body)), ContentLength: int64(len(d.body)), Request: req,
	}, nil
}

// fetched is the answer of somebody else than the endpoint.
type fetched struct {
	status int
	header http.Header
	body   []byte
}

// fetch sends req to somebody else than the endpoint, as a step of the check, and reads the answer. The problem is of
// class auth_server unless it is ours; an answer with any status is none, but for a redirect: a probe follows none, with
// or without secrets, to where a stranger points.
func (c *conversation) fetch(ctx context.Context, step string, req *http.Request) (fetched, *problem) {
	watch := newStopwatch()
	a := c.begun(question{step: step, method: req.Method}, watch)
	d, sent, p := c.exchange(ctx, step, req, watch)
	recorded := &c.result.Steps[a.step]
	recorded.Latency, recorded.Phases = watch.times()
	recorded.HTTPStatus, recorded.BytesIn, recorded.BytesOut = d.status, int64(len(d.body)), sent
	c.ended = time.Since(c.started)
	return d, p
}

// exchange is fetch without a step.
func (c *conversation) exchange(ctx context.Context, step string, req *http.Request, watch *stopwatch) (d fetched, sent int64, p *problem) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body) // of our own making
	}
	dialCtx, cancelDial := c.withDeadline(ctx)
	defer cancelDial()
	ctx, cancel := context.WithTimeoutCause(dialCtx, fetchPatience, outOfTime{fetchPatience})
	defer cancel()
	l := line{transport: c.foreignTransport(req.URL, len(body) > 0)}
	defer l.close()
	build := func(ctx context.Context) (*http.Request, error) {
		r := req.Clone(ctx)
		r.Header.Set("User-Agent", c.prober.userAgent())
		r.Header.Set("Accept", "application/json")
		r.Header.Set("Accept-Encoding", "identity")
		if r.ContentLength = int64(len(body)); len(body) > 0 {
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		return r, nil
	}
	resp, err := l.roundTrip(ctx, ctx, build, watch, func(r *http.Request) { c.transcript.sent(step, time.Since(c.started), r, body) })
	if err != nil {
		p, _ := c.explain(ctx, err, watch)
		return d, int64(len(body)), foreign(req.URL, p)
	}
	defer resp.Body.Close()
	watch.enterBody()
	at := time.Since(c.started)
	d = fetched{status: resp.StatusCode, header: resp.Header}
	d.body, err = readBounded(resp.Body, maxMetadata)
	watch.freeze()
	c.hideTokens(step, &d)
	c.transcript.received(step, at, resp, d.body, err != nil)
	switch {
	case errors.Is(err, errBodyTooLarge):
		p = authServerProblem(d.status, "%s answered more than %d bytes", req.URL.Host, maxMetadata)
	case err != nil:
		p = foreign(req.URL, c.explainBody(ctx, err, watch))
	case isRedirect(resp):
		p = authServerProblem(d.status, "%s redirects to %s: name that place instead", req.URL.Host, RedactURL(resp.Header.Get("Location")))
	}
	return d, int64(len(body)), p
}

// foreign turns what went wrong with somebody else into a problem that does not blame the endpoint.
func foreign(where *url.URL, p *problem) *problem {
	if p.class == ClassProbeError || p.class == ClassAuthServer {
		return p
	}
	return authServerProblem(p.code, "%s: %s", where.Host, p.message)
}

// hideTokens makes secrets of the tokens in an answer before anybody sees it.
func (c *conversation) hideTokens(step string, d *fetched) {
	if step != stepToken {
		return
	}
	var tokens []string
	if object, err := readObject(d.body); err == nil {
		for _, name := range tokenMembers {
			tokens = append(tokens, object.text(name))
		}
	}
	if form, err := url.ParseQuery(string(d.body)); err == nil {
		for _, name := range tokenMembers {
			tokens = append(tokens, form[name][:min(len(form[name]), maxTokensNamed)]...)
		}
	}
	c.secrets.add(tokens...)
}

// maxTokensNamed is how many tokens of one name are made secrets. The first is the one that is used, and what a server
// makes a secret is looked for in all that is kept of a check.
const maxTokensNamed = 2

// tokenMembers are what is secret in the answer of a token endpoint (RFC 6749 §5.1, OpenID Connect Core §3.1.3.3).
var tokenMembers = []string{"access_token", "refresh_token", "id_token"}

// foreignTransport returns the transport to where, which is not the endpoint though it may be the same host. TLS is as
// safe as the target makes it: its settings belong to its host, and elsewhere its CA may vouch beside the others.
func (c *conversation) foreignTransport(where *url.URL, secrets bool) *http.Transport {
	t := Target{URL: where.String()}
	if sameHost(where, c.url) {
		t.Options.TLS, t.Options.IP = c.target.Options.TLS, c.target.Options.IP
	}
	transport := c.prober.newTransport(t)
	if ca := c.target.Options.TLS.CA; ca != "" && !sameHost(where, c.url) {
		if pool := c.prober.ownRoots(); pool.AppendCertsFromPEM([]byte(ca)) {
			transport.TLSClientConfig.RootCAs = pool
		}
	}
	if secrets && where.Scheme == "http" {
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.prober.dialPrivate(ctx, t, network, address)
		}
	}
	return transport
}

// ownRoots returns a copy of who may vouch for servers.
func (p *Prober) ownRoots() *x509.CertPool {
	if p.RootCAs != nil {
		return p.RootCAs.Clone()
	}
	if pool, err := x509.SystemCertPool(); err == nil {
		return pool
	}
	return x509.NewCertPool()
}

// dialPrivate is dial for secrets without TLS: they only go where nobody on the way listens.
func (p *Prober) dialPrivate(ctx context.Context, t Target, network, address string) (net.Conn, error) {
	addrs, port, err := p.Egress.addresses(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if special(addrs[0].WithZone("")) == "" {
		return nil, authServerProblem(0, "%s is a public address: a client secret goes there over https only", address)
	}
	return p.dial(ctx, t, network, netip.AddrPortFrom(addrs[0], port).String())
}

// grants are the access tokens that a Prober has at hand. The zero value is ready.
type grants struct {
	mu   sync.Mutex // guards what follows
	held map[grantKey]*grant
}

// grantKey is a hash of everything that a token depends on.
type grantKey [sha256.Size]byte

func (c *conversation) grantKey() grantKey {
	o := c.target.Options.OAuth
	parts := []string{o.TokenURL, c.target.URL, o.ClientID, o.ClientSecret, o.Resource}
	if o.TokenURL != "" && o.Resource != "" {
		parts[1] = "" // endpoints that share all the rest share a token
	}
	h := sha256.New()
	for _, part := range append(parts, o.Scopes...) {
		_ = binary.Write(h, binary.BigEndian, uint32(len(part))) // never fails, as h does not
		h.Write([]byte(part))
	}
	return grantKey(h.Sum(nil))
}

func (g *grants) find(key grantKey) *grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held[key]
}

func (g *grants) forget(key grantKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.held, key)
}

// keep remembers a grant. Where there are too many it drops those that have ended, else the one that ends first.
func (g *grants) keep(key grantKey, made *grant, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == nil {
		g.held = map[grantKey]*grant{}
	}
	if len(g.held) >= maxGrants {
		var first grantKey
		ends := time.Time{}
		for k, held := range g.held {
			if held.until.Before(now) {
				delete(g.held, k)
			} else if ends.IsZero() || held.until.Before(ends) {
				first, ends = k, held.until
			}
		}
		if len(g.held) >= maxGrants {
			delete(g.held, first)
		}
	}
	g.held[key] = made
}
