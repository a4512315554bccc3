package alerts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Bounds on what a channel's server may do to us.
const (
	maxAnswer       = 64 << 10 // a Slack answer repeats the message: a few kilobytes
	maxAnswerHeader = 64 << 10
	maxRetryAfter   = time.Hour // longer is a mistake, or malice
)

// NewClient returns the HTTP client for senders. It reaches hosts only through dial, such as probe.Egress.DialContext,
// which decides what may be dialled; it takes no proxy from the environment, because a proxy would dial for it; and it
// follows no redirect, because the secret in a webhook's address is for its host alone.
func NewClient(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dial,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    10 * time.Second,
			ResponseHeaderTimeout:  15 * time.Second,
			MaxResponseHeaderBytes: maxAnswerHeader,
			MaxIdleConnsPerHost:    2,
			IdleConnTimeout:        30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       30 * time.Second, // senders have shorter deadlines from their callers
	}
}

// caller sends one request and answers with a 2xx response of bounded size, or with an error without secrets: a
// *refusal when the server answered with anything else.
type caller struct{ client *http.Client }

func (c caller) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.client.Do(req) //nolint:gosec // where a channel leads is its owner's choice, what may be dialled is dial's
	if err != nil {
		return nil, unreachable(err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		resp.Body = bounded{io.LimitReader(resp.Body, maxAnswer), resp.Body}
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, refused(resp)
}

// unreachable drops the URL that net/http puts into its errors: it may be a webhook's, which is a secret.
func unreachable(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%w: %w", errUnreachable, err)
}

// errUnreachable means that no answer came, or not the whole of it.
var errUnreachable = errors.New("cannot be reached")

type bounded struct {
	io.Reader
	io.Closer
}

// refusal is an answer other than 2xx.
type refusal struct {
	status     int
	word       string // Slack's word for it, such as "no_service"; empty when there was none
	retryAfter time.Duration
}

func (r *refusal) Error() string {
	text := fmt.Sprintf("answered HTTP %d", r.status)
	if name := http.StatusText(r.status); name != "" {
		text += " " + name
	}
	return text
}

func refused(resp *http.Response) *refusal {
	r := &refusal{status: resp.StatusCode, retryAfter: retryAfter(resp.Header.Get("Retry-After"))}
	if body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10)); err == nil {
		r.word = errorWord(string(body))
	}
	return r
}

// errorWord returns the error code that text is, empty when it is anything else. Longer texts are not passed on: some
// servers answer with the path they were called by, which in a webhook is the secret.
func errorWord(text string) string {
	if text = strings.TrimSpace(text); isErrorWord(text) {
		return text
	}
	return ""
}

var isErrorWord = regexp.MustCompile(`^[a-z][a-z_]{2,63}$`).MatchString

// retryAfter reads the header of that name (RFC 9110 §10.2.3): seconds or a date; zero when it is neither.
func retryAfter(value string) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = time.Until(at).Round(time.Second)
	}
	return min(max(wait, 0), maxRetryAfter)
}
