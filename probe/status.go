package probe

import (
	"bytes"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds how long an endpoint can keep us away.
const maxRetryAfter = 24 * time.Hour

// statusSpeaks explains an answer whose status says more than its body; nil when it does not.
func (c *conversation) statusSpeaks(q question, a *answer, r *reading) *problem {
	if a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
		c.result.RetryAfter = retryAfter(a.header, time.Now())
	}
	wall := !r.found && botWall(a.status, a.header, r.body)
	if !wall && a.status < http.StatusBadRequest {
		return nil
	}
	words := statusMessage(a.status, c.answerWords(a))
	switch {
	case wall:
		return &problem{ClassBlocked, a.status, "a bot wall answered: " + words}
	case a.status == http.StatusTooManyRequests || a.status == http.StatusPaymentRequired:
		return &problem{ClassRateLimited, a.status, words}
	case a.status == http.StatusUnavailableForLegalReasons:
		return &problem{ClassBlocked, a.status, words} // to callers from where we are
	case a.status == http.StatusUnauthorized:
		return c.unauthorized(q, a, words)
	case a.status == http.StatusMisdirectedRequest,
		(a.status == http.StatusForbidden || a.status == http.StatusBadRequest) && hostWords(c.answerWords(a)):
		return &problem{ClassHostRejected, a.status, words}
	case (a.status == http.StatusForbidden || a.rpc == nil && (a.status == http.StatusBadRequest || a.status == http.StatusServiceUnavailable)) &&
		quotaWords(c.answerWords(a)):
		return &problem{ClassRateLimited, a.status, words}
	case a.status == http.StatusForbidden:
		return c.forbidden(a, words)
	case a.status == http.StatusBadRequest && a.rpc == nil && authWords(a.words):
		if c.target.hasCredentials() {
			return &problem{ClassCredentialRejected, a.status, words}
		}
		return &problem{ClassAuthRequired, a.status, words}
	default:
		return nil
	}
}

// judgeStatus explains a status that is wrong in itself; nil when it is a good one for q.
func (c *conversation) judgeStatus(q question, a *answer, r *reading) *problem {
	if p := c.statusSpeaks(q, a, r); p != nil {
		return p
	}
	success := a.status >= 200 && a.status < 300
	switch {
	case success && (q.notify || q.bare):
		return nil
	case a.status == http.StatusOK:
		return nil
	case success && len(r.body) == 0 && r.bad != nil && r.size == 0:
		return &problem{ClassHTTPStatus, a.status, statusWords(a.status) + " without an answer, as if the request had been a notification"}
	case success:
		return nil
	default:
		message := statusMessage(a.status, a.words)
		if hint := c.statusHint(a); hint != "" && !q.bare {
			message += " (" + hint + ")"
		}
		return &problem{ClassHTTPStatus, a.status, message}
	}
}

// answerWords returns what the endpoint says in the body of its answer.
func (c *conversation) answerWords(a *answer) string {
	if a.rpc != nil {
		return a.rpc.Message
	}
	return a.words
}

// statusHint says what a status means for an endpoint of JSON-RPC, where that is more than its name.
func (c *conversation) statusHint(a *answer) string {
	if c.overStream() {
		return streamHint(a.status)
	}
	switch a.status {
	case http.StatusMethodNotAllowed:
		switch allow := c.text(a.header.Get("Allow"), 60); {
		case allow == "":
			return "this path does not take POST"
		case strings.Contains(allow, http.MethodPost):
			return "it says that it takes POST, and POST is what the probe sent"
		default:
			return "this path does not take POST, only " + allow
		}
	case http.StatusUpgradeRequired, http.StatusSwitchingProtocols:
		return "this may be the address of a WebSocket, " + webSocketScheme(c.url.Scheme) + "://"
	default:
		return statusHints[a.status]
	}
}

// streamHint says what a status means in place of the 101 with which a WebSocket begins. Its request is a GET without a body.
func streamHint(status int) string {
	switch status {
	case http.StatusOK, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusLengthRequired, http.StatusUnsupportedMediaType,
		http.StatusNotImplemented, http.StatusUpgradeRequired, http.StatusBadRequest:
		return "there may be no WebSocket at this path"
	default:
		return statusHints[status]
	}
}

func webSocketScheme(scheme string) string {
	if scheme == "https" {
		return "wss"
	}
	return "ws"
}

// statusHints holds the hints that are the same everywhere; those from 520 on are Cloudflare's.
var statusHints = map[int]string{
	http.StatusMovedPermanently:      "a redirect that does not say where to",
	http.StatusFound:                 "a redirect that does not say where to",
	http.StatusSeeOther:              "a redirect that does not say where to",
	http.StatusTemporaryRedirect:     "a redirect that does not say where to",
	http.StatusPermanentRedirect:     "a redirect that does not say where to",
	http.StatusNotFound:              "nothing at this path",
	http.StatusGone:                  "nothing at this path any more",
	http.StatusNotAcceptable:         "the server offers no JSON",
	http.StatusRequestTimeout:        "the server gave up waiting",
	http.StatusLengthRequired:        "something on the way took the Content-Length off the request",
	http.StatusRequestEntityTooLarge: "the request is larger than the server takes",
	http.StatusUnsupportedMediaType:  "the probe sent application/json",
	http.StatusNotImplemented:        "the server does not know POST",
	http.StatusBadGateway:            "the gateway has no sound answer from the server behind it",
	http.StatusServiceUnavailable:    "overloaded, or the gateway has no server to ask",
	http.StatusGatewayTimeout:        "the gateway waited in vain for the server behind it",
	520:                              "the server behind the gateway answered something odd",
	521:                              "the server behind the gateway refuses connections",
	522:                              "no connection from the gateway to the server behind it",
	523:                              "the gateway does not reach the server behind it",
	524:                              "the gateway waited in vain for the server behind it",
	525:                              "no TLS between the gateway and the server behind it",
	526:                              "the certificate of the server behind the gateway is not valid",
	530:                              "the gateway does not know the server behind it",
}

func statusWords(status int) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
}

// statusMessage joins a status and what the endpoint says about it, which often is the status again.
func statusMessage(status int, words string) string {
	switch {
	case strings.HasPrefix(words, strconv.Itoa(status)):
		return words
	case words == http.StatusText(status), words == "error code: "+strconv.Itoa(status):
		return statusWords(status)
	}
	return statusWords(status) + after(words)
}

// hostWords reports whether a refusal is about the Host or Origin that a server was called by.
func hostWords(s string) bool {
	s = strings.ToLower(s)
	for _, words := range []string{"invalid host", "host header", "host not allowed", "blocked host", "disallowed host", "invalid origin", "origin not allowed"} {
		if strings.Contains(s, words) {
			return true
		}
	}
	return false
}

// quotaWords reports whether a message says in words what a 429 says by number.
func quotaWords(s string) bool {
	s = costly.ReplaceAllString(strings.ToLower(s), "")
	for _, words := range []string{
		"rate limit", "ratelimit", "rate-limit", "too many requests", "quota", "request limit", "limit exceeded", "requests limited to",
		"reached the free tier", "/billing", "capacity exceeded", "capacity limit", "exceeded its compute units", "throttled", "usage limit",
		"out of credits", "credits exhausted", "exceeded the maximum number of requests", "frequency limit", "max usage reached",
	} {
		if strings.Contains(s, words) {
			return true
		}
	}
	return allowance.MatchString(s)
}

// allowance finds sentences about an allowance that is used up, in either order: "exceeded its … requests capacity",
// "request rate exceeded", "daily credit limit". What a call may cost or return is no such allowance.
var allowance = regexp.MustCompile(`exceed.{0,60}(capacity|request rate|requests per|credit|daily|monthly)|(capacity|request rate|requests per.{0,20}|credits?|daily.{0,30}|monthly.{0,30}) (was |has been |is )?(exceeded|reached)`)

// costly finds limits of what one call may cost, which have words in common with quotas.
var costly = regexp.MustCompile(`(gas|size|length|depth|memory) limit exceeded`)

// authWords reports whether a message says in words what a 401 says by number.
func authWords(s string) bool {
	s = strings.ToLower(s)
	if strings.HasPrefix(s, "unauthorized") || strings.HasPrefix(s, "unauthenticated") || strings.HasPrefix(s, "not authenticated") ||
		strings.HasPrefix(s, "forbidden") || strings.HasPrefix(s, "not authorized") || strings.HasPrefix(s, "not authorised") {
		return true
	}
	for _, words := range []string{
		"must be authenticated", "must authenticate", "authentication required", "authentication failed", "authorization required",
		"missing api key", "missing authentication", "api key disabled", "jwt expired", "token expired", "login required", "missing required authorization header", "api key is missing", "api key required", "api key is required", "invalid api key", "api key is invalid",
	} {
		if strings.Contains(s, words) {
			return true
		}
	}
	return false
}

// botWallMarks are found on the pages by which bot walls ask for a browser.
var botWallMarks = []string{
	"just a moment...", "just a moment…", "/cdn-cgi/challenge-platform", "error code: 1010", "error code: 1020", "error 1010", "error 1020",
	"attention required! | cloudflare", "_incapsula_resource", "captcha-delivery.com", "px-captcha", "awswafintegration",
	"sucuri website firewall", "errors.edgesuite.net", "checking your browser",
}

// botWall reports whether a wall answered in place of the endpoint. Only the beginning of a page is searched.
func botWall(status int, h http.Header, body []byte) bool {
	if h.Get("Cf-Mitigated") != "" || h.Get("X-Amzn-Waf-Action") != "" {
		return true
	}
	if status < 400 && status != http.StatusOK && status != http.StatusAccepted {
		return false
	}
	page := bytes.ToLower(body[:min(len(body), 32<<10)])
	for _, mark := range botWallMarks {
		if bytes.Contains(page, []byte(mark)) {
			return true
		}
	}
	return false
}

// retryAfter reads the Retry-After header, seconds or a date; zero when there is none that makes sense.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	var wait time.Duration
	if seconds, err := strconv.Atoi(value); err == nil {
		wait = time.Duration(min(max(seconds, 0), int(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
