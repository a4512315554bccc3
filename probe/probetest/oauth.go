package probetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// AuthPlan says how an authorization server behaves, and the endpoint that it guards.
type AuthPlan struct {
	ClientID, Secret string

	Tenant   string   // path of the issuer: "/tenant1"
	Place    string   // where the server's metadata lies: "oauth" (also when empty), "openid", "appended" or "none"
	Issuer   string   // said in place of the true one
	Methods  []string // token_endpoint_auth_methods_supported; nil lists none, and either is taken
	Lifetime int      // of a token, in seconds; zero does not say
	Token    string   // what tokens begin with
	Type     string   // of tokens; empty means Bearer

	Status int    // of the token endpoint, in place of 200
	Body   string // of the token endpoint, in place of a token
	Media  string // of Body; empty means JSON

	Advertises string   // where the endpoint's 401 leads to its metadata: "header", "inserted", "root", "both" or "none"
	Bare       bool     // the 401 has no WWW-Authenticate header at all
	Resource   string   // said in place of the endpoint's own URL; "/" is its origin
	Scopes     []string // scopes_supported of the endpoint
	Challenge  string   // further parameters of the 401: `scope="a b"`
}

// Auth is an authorization server and an endpoint that it guards, both on loopback. They are stopped when their test ends.
type Auth struct {
	URL    string // of the endpoint
	Issuer string // the authorization server
	plan   AuthPlan

	mu      sync.Mutex // guards what follows
	asked   []string
	forms   []string
	issued  int
	revoked int // tokens up to this one are not taken
}

// NewAuth starts both. The endpoint hands what it lets in on to next, at the path /mcp.
func NewAuth(t testing.TB, plan AuthPlan, next http.Handler) *Auth {
	t.Helper()
	a := &Auth{plan: plan}
	server := httptest.NewServer(http.HandlerFunc(a.serveTokens))
	t.Cleanup(server.Close)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.guard(w, r, next) }))
	t.Cleanup(endpoint.Close)
	a.Issuer, a.URL = server.URL+plan.Tenant, endpoint.URL+"/mcp"
	return a
}

// TokenURL returns where tokens are had.
func (a *Auth) TokenURL() string { return a.Issuer + "/token" }

// Asked returns the method and path of every request to the authorization server, and of those to the endpoint for
// metadata.
func (a *Auth) Asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

// Forms returns the body of every token request.
func (a *Auth) Forms() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.forms)
}

// Revoke makes the endpoint refuse every token issued so far.
func (a *Auth) Revoke() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revoked = a.issued
}

func (a *Auth) note(r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r.Method+" "+r.URL.Path)
}

func (a *Auth) token(n int) string { return fmt.Sprintf("%sissued-token-%04d", a.plan.Token, n) }

func (a *Auth) serveTokens(w http.ResponseWriter, r *http.Request) {
	a.note(r)
	tenant := a.plan.Tenant
	places := map[string]string{
		"":         "/.well-known/oauth-authorization-server" + tenant,
		"oauth":    "/.well-known/oauth-authorization-server" + tenant,
		"openid":   "/.well-known/openid-configuration" + tenant,
		"appended": tenant + "/.well-known/openid-configuration",
	}
	switch r.URL.Path {
	case places[a.plan.Place]:
		metadata := map[string]any{"issuer": a.Issuer, "token_endpoint": a.TokenURL()}
		if a.plan.Issuer != "" {
			metadata["issuer"] = a.plan.Issuer
		}
		if a.plan.Methods != nil {
			metadata["token_endpoint_auth_methods_supported"] = a.plan.Methods
		}
		writeJSON(w, http.StatusOK, metadata)
	case tenant + "/token":
		a.serveToken(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (a *Auth) serveToken(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	a.forms = append(a.forms, r.PostForm.Encode())
	a.mu.Unlock()
	switch {
	case a.plan.Status != 0 || a.plan.Body != "":
		w.Header().Set("Content-Type", "application/json")
		if a.plan.Media != "" {
			w.Header().Set("Content-Type", a.plan.Media)
		}
		w.WriteHeader(max(a.plan.Status, http.StatusOK))
		fmt.Fprint(w, a.plan.Body)
	case r.PostForm.Get("grant_type") != "client_credentials":
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": "unsupported_grant_type"})
	case !a.knows(r):
		writeJSON(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client", "error_description": "who is that? " + r.PostForm.Get("client_secret")})
	default:
		a.issue(w)
	}
}

// knows reports whether the client is the one that is known, and says so in a way that the server takes.
func (a *Auth) knows(r *http.Request) bool {
	id, secret, basic := r.BasicAuth()
	id, _ = url.QueryUnescape(id) // RFC 6749 §2.3.1
	secret, _ = url.QueryUnescape(secret)
	method := "client_secret_basic"
	if !basic {
		id, secret, method = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret"), "client_secret_post"
	}
	return id == a.plan.ClientID && secret == a.plan.Secret && (a.plan.Methods == nil || slices.Contains(a.plan.Methods, method))
}

func (a *Auth) issue(w http.ResponseWriter) {
	a.mu.Lock()
	a.issued++
	n := a.issued
	a.mu.Unlock()
	token := map[string]any{"access_token": a.token(n), "token_type": "Bearer"}
	if a.plan.Type != "" {
		token["token_type"] = a.plan.Type
	}
	if a.plan.Lifetime != 0 {
		token["expires_in"] = a.plan.Lifetime
	}
	writeJSON(w, http.StatusOK, token)
}

// guard lets those in that bear a token, and tells others where to get one.
func (a *Auth) guard(w http.ResponseWriter, r *http.Request, next http.Handler) {
	const inserted, root = "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"
	if strings.HasPrefix(r.URL.Path, "/.well-known/") {
		a.note(r)
		shown := map[string]bool{
			inserted:                 a.plan.Advertises == "inserted" || a.plan.Advertises == "both" || a.plan.Advertises == "",
			root:                     a.plan.Advertises == "root" || a.plan.Advertises == "both",
			"/.well-known/elsewhere": a.plan.Advertises == "header",
		}
		if !shown[r.URL.Path] {
			http.NotFound(w, r)
			return
		}
		metadata := map[string]any{"resource": a.URL, "authorization_servers": []string{a.Issuer}}
		switch a.plan.Resource {
		case "":
		case "/":
			metadata["resource"] = strings.TrimSuffix(a.URL, "/mcp")
		default:
			metadata["resource"] = a.plan.Resource
		}
		if a.plan.Scopes != nil {
			metadata["scopes_supported"] = a.plan.Scopes
		}
		writeJSON(w, http.StatusOK, metadata)
		return
	}
	if a.admits(r.Header.Get("Authorization")) {
		next.ServeHTTP(w, r)
		return
	}
	if !a.plan.Bare {
		challenge := `Bearer realm="test"`
		if a.plan.Advertises == "header" {
			challenge += `, resource_metadata="` + strings.TrimSuffix(a.URL, "/mcp") + `/.well-known/elsewhere"`
		}
		if a.plan.Challenge != "" {
			challenge += ", " + a.plan.Challenge
		}
		w.Header().Set("WWW-Authenticate", challenge)
	}
	http.Error(w, "you sent "+r.Header.Get("Authorization"), http.StatusUnauthorized)
}

func (a *Auth) admits(authorization string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for n := a.revoked + 1; n <= a.issued; n++ {
		if authorization == "Bearer "+a.token(n) {
			return true
		}
	}
	return false
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // of maps and strings
}
