package probe

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// unauthorized explains a 401.
func (c *conversation) unauthorized(q question, a *answer, words string) *problem {
	advertised := a.header.Get("WWW-Authenticate") != ""
	if !advertised && !q.bare && !c.mayRenew() {
		c.warn(q.step, ClassAuthNotAdvertised, a.status, "401 without a WWW-Authenticate header")
	}
	words += challengeWords(a.header, words)
	if c.access.authorization != "" {
		c.prober.grants.forget(c.grantKey())
		if c.access.tried {
			words += "; the access token had been issued a moment before"
		}
		return &problem{ClassCredentialRejected, a.status, words}
	}
	if c.target.hasCredentials() && c.target.Options.OAuth == nil {
		return &problem{ClassCredentialRejected, a.status, words + c.endedWords()}
	}
	return &problem{ClassAuthRequired, a.status, words}
}

// forbidden explains a 403.
func (c *conversation) forbidden(a *answer, words string) *problem {
	words += challengeWords(a.header, words)
	scope := bearerChallenge(a.header).params["error"] == "insufficient_scope"
	if scope || c.target.hasCredentials() {
		return &problem{ClassAuthForbidden, a.status, words}
	}
	return &problem{ClassAuthRequired, a.status, words}
}

// challengeWords says what a bearer challenge holds against the request (RFC 6750 §3), beside what the body said already.
func challengeWords(h http.Header, said string) string {
	params := bearerChallenge(h).params
	if params["error"] == "" {
		return ""
	}
	words := ""
	for _, part := range []string{tidy(params["error"], 60), tidy(params["error_description"], 200)} {
		if !strings.Contains(said, part) {
			words += after(part)
		}
	}
	if scope := params["scope"]; scope != "" && params["error"] == "insufficient_scope" {
		words += ": it takes the scope " + tidy(scope, 200)
	}
	return words
}

// challenge is one way to authenticate that an answer offers (RFC 9110 §11.3).
type challenge struct {
	scheme string
	params map[string]string // by lower-case name
}

// Bounds on challenges that are read, generous for real ones.
const (
	maxChallenges     = 10
	maxChallengeBytes = 8 << 10
	maxParameters     = 20
)

// bearerChallenge returns the challenge that asks for a token: the one that says where its metadata is, else the first.
// Without any, its params are nil.
func bearerChallenge(h http.Header) challenge {
	var bearers []challenge
	for _, ch := range challenges(h) {
		if strings.EqualFold(ch.scheme, "Bearer") {
			bearers = append(bearers, ch)
		}
	}
	i := slices.IndexFunc(bearers, func(ch challenge) bool { return ch.params["resource_metadata"] != "" })
	switch {
	case len(bearers) == 0:
		return challenge{}
	case i < 0:
		return bearers[0]
	default:
		return bearers[i]
	}
}

// challenges reads the WWW-Authenticate header, as far as it can be read.
func challenges(h http.Header) []challenge {
	var list []challenge
	for _, value := range h["Www-Authenticate"] {
		value = value[:min(len(value), maxChallengeBytes)]
		for len(list) < maxChallenges {
			var word string
			value = strings.TrimLeft(value, " \t,")
			if word, value = splitBefore(value, " \t,=\""); word == "" {
				break
			}
			rest, isParam := strings.CutPrefix(strings.TrimLeft(value, " \t"), "=")
			if !isParam || len(list) == 0 {
				list = append(list, challenge{word, map[string]string{}})
				continue
			}
			var content string
			content, value = parameterValue(strings.TrimLeft(rest, " \t"))
			if params := list[len(list)-1].params; len(params) < maxParameters {
				params[strings.ToLower(word)] = content
			}
		}
	}
	return list
}

// parameterValue reads a token or a quoted string (RFC 9110 §5.6.4), and returns what follows it.
func parameterValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		return splitBefore(s, " \t,")
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), "" // the closing quote is missing
}

// credentialWarning is how long before the end of a token in a header a check warns: somebody has to get another one.
const credentialWarning = 7 * 24 * time.Hour

// tokenEnd returns until when a token holds that is a JWT (RFC 7519 §4.1.4). Nobody verifies its signature here: who
// issued it knows when it ends.
func tokenEnd(value string) (time.Time, bool) {
	if scheme, token, ok := strings.Cut(strings.TrimSpace(value), " "); ok && strings.EqualFold(scheme, "Bearer") {
		value = strings.TrimSpace(token)
	}
	parts := strings.Split(value, ".")
	if len(parts) != 3 || len(value) > maxToken {
		return time.Time{}, false
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}, false
	}
	var said struct {
		Exp *float64 `json:"exp"`
	}
	const endOfDates = 253402300799 // 9999-12-31
	if json.Unmarshal(claims, &said) != nil || said.Exp == nil || *said.Exp <= 0 || *said.Exp > endOfDates {
		return time.Time{}, false
	}
	return time.Unix(int64(*said.Exp), 0), true
}

// endedWords says of a token in the headers of the target that its time is over; empty when there is none.
func (c *conversation) endedWords() string {
	for _, h := range c.target.Headers {
		if end, ok := tokenEnd(h.Value); ok && end.Before(c.started) {
			return fmt.Sprintf("; the token in the %s header expired %s ago (%s)", h.Name, span(c.started.Sub(end)), day(end))
		}
	}
	return ""
}

// noteCredentials says at the end of a check what there is to say about credentials that decided nothing.
func (c *conversation) noteCredentials(ctx context.Context) {
	if len(c.result.Steps) == 0 {
		return
	}
	first := c.result.Steps[0].Name
	for _, h := range c.target.Headers {
		end, ok := tokenEnd(h.Value)
		left := end.Sub(c.started)
		switch {
		case !ok || left > credentialWarning:
		case left > 0:
			c.warn(first, ClassCredentialExpiring, 0, "the token in the %s header ends in %s (%s)", h.Name, span(left), day(end))
		case c.result.Verdict != Gated:
			c.warn(first, ClassCredentialExpiring, 0, "the token in the %s header expired %s ago (%s) and is taken all the same", h.Name, span(-left), day(end))
		}
	}
	c.noteAdvertising(ctx)
}

// noteAdvertising looks for what a client would find out beside a 401 without WWW-Authenticate that decided the check:
// MCP lets a server publish its metadata at a well-known place in its stead. At most two small requests.
func (c *conversation) noteAdvertising(ctx context.Context) {
	f := c.result.Failure
	if f == nil || f.Code != http.StatusUnauthorized || c.overStream() || c.target.Kind != KindMCP && c.target.Kind != KindAuto {
		return
	}
	i := slices.IndexFunc(c.result.Warnings, func(w Warning) bool { return w.Class == ClassAuthNotAdvertised && w.Step == f.Step })
	if i < 0 || c.target.Options.OAuth != nil {
		return
	}
	places := resourcePlaces(c.url)
	var found []bool
	for _, where := range places {
		d, _, p := c.exchange(ctx, stepResourceMetadata, getRequest(where), newStopwatch())
		if p != nil && p.class == ClassProbeError {
			return
		}
		o, ok := d.object()
		found = append(found, p == nil && ok && o.offers("authorization_servers"))
	}
	c.result.Warnings[i].Message += "; " + advertisedWords(found)
}

// advertisedWords says where the metadata of an endpoint was found: first with its path inserted, then at the root, or
// there alone.
func advertisedWords(found []bool) string {
	switch last := found[len(found)-1]; {
	case !slices.Contains(found, true):
		return "no protected resource metadata either (RFC 9728): clients cannot find out where to get a token"
	case len(found) == 1:
		return "its protected resource metadata says where to get a token"
	case found[0] && last:
		return "its protected resource metadata, for its path and at the root, says where to get a token"
	case last:
		return "its protected resource metadata is at the root only, and not where RFC 9728 §3.1 puts that of its path"
	default:
		return "its protected resource metadata is with its path inserted only, and not at the root"
	}
}
