package alerts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// answer is what a service said to a request, whatever its status. The body holds at most maxAnswer bytes.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends body as JSON and returns the answer, of any status. service names whom it asks in an error: that no answer came,
// or that address is none. No error holds the address.
func (c caller) ask(ctx context.Context, service, method, address, authorization string, body any) (answer, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return answer{}, fmt.Errorf("word a message for %s: %w", service, err)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(data))
	if err != nil {
		return answer{}, &PermanentError{"the channel's address is not a URL"}
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("Accept", "application/json")
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := c.client.Do(req) //nolint:gosec // where a channel leads is its owner's choice, what may be dialled is dial's
	if err != nil {
		return answer{}, fmt.Errorf("%s %w", service, unreachable(err))
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return answer{}, fmt.Errorf("%s %w", service, unreachable(err))
	}
	return answer{resp.StatusCode, resp.Header, read}, nil
}

func (a answer) ok() bool { return a.status >= 200 && a.status <= 299 }

// isPage reports whether a web page came, which no service answers with: a login page, or the page of another server.
func (a answer) isPage() bool { return bytes.HasPrefix(bytes.TrimSpace(a.body), []byte("<")) }

// read decodes the body into v and reports whether it is JSON of that form.
func (a answer) read(v any) bool { return json.Unmarshal(a.body, v) == nil }

// verdict is what an answer other than a success means.
type verdict struct {
	service   string
	said      string // in the service's own words, a stranger's text; may be empty
	todo      string // what somebody has to do about it; may be empty
	permanent bool
	wait      time.Duration // for which the service wants to be left alone; zero where it does not say
}

// verdict returns what goes for every service: which statuses pass, and what a Retry-After header asks for.
func (a answer) verdict(service string) verdict {
	v := verdict{service: service, permanent: !passingStatus(a.status)}
	if !v.permanent {
		v.wait = retryAfter(a.header.Get("Retry-After"))
	}
	return v
}

// refusal words v as an error of Send, without the secrets of c.
func (a answer) refusal(v verdict, c store.Channel) error {
	text := v.service + " " + (&refusal{status: a.status}).Error()
	if said := quoted(v.said, c); said != "" {
		text += ": " + said
	}
	if v.todo != "" {
		text += ": " + v.todo
	}
	switch {
	case v.permanent:
		return &PermanentError{text}
	case v.wait > 0:
		return &RetryError{After: v.wait, Err: fmt.Errorf("%s", text)}
	}
	return fmt.Errorf("%s", text)
}

// unexpected is the error for an answer of success that service would not give. A proxy or a server that is just being
// restarted gives such answers too, and so it passes; a web page means that another server is asked for good.
func (a answer) unexpected(service string) error {
	if a.isPage() {
		return &PermanentError{service + "'s address answers with a web page: it is not the right address"}
	}
	return fmt.Errorf("the answer is not one that %s gives", service)
}

// maxQuoted bounds the words of a service in an error, in characters.
const maxQuoted = 200

// quoted returns a service's words fit for an error: a line without the secrets of c. Servers repeat what they were called
// by: the token in a path, the key in a body.
func quoted(text string, c store.Channel) string {
	text = oneLine(text, maxAnswer) // first, or a character that is dropped later could hide a secret
	return oneLine(withoutSecrets(text, c), maxQuoted)
}

// secretParts returns everything by which a secret of c could be used, the longest first: each as a whole, and of an
// address also its path, the long parts of the path, and its parameters.
func secretParts(c store.Channel) []string {
	var parts []string
	for _, secret := range c.Secrets {
		parts = append(parts, secret, url.QueryEscape(secret), url.PathEscape(secret))
		u, err := url.Parse(secret)
		if err != nil || u.Host == "" {
			continue
		}
		parts = append(parts, u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery)
		for segment := range strings.SplitSeq(u.Path, "/") {
			if len(segment) >= 8 { // shorter ones are words such as "hooks"
				parts = append(parts, segment)
			}
		}
		for _, values := range u.Query() {
			for _, value := range values {
				if len(value) >= 8 {
					parts = append(parts, value, url.QueryEscape(value))
				}
			}
		}
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return len(part) < 2 })
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) })
	return parts
}

// seconds returns how long a service asks to wait that says so in a number of its own, within the bounds of retryAfter.
func seconds(n float64) time.Duration {
	if !(n > 0) { // also when it is no number
		return 0
	}
	return time.Duration(min(n, maxRetryAfter.Seconds()) * float64(time.Second))
}

// base returns the address of an API: what the channel's owner set, else the service's own; without a slash at its end.
func base(c store.Channel, otherwise string) string {
	if set := c.Settings["api_url"]; set != "" {
		return strings.TrimRight(set, "/")
	}
	return otherwise
}
