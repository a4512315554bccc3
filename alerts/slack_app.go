package alerts

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// SlackApp answers what Slack sends us: clicks on the buttons of our messages, and the command /rollcall. Secrets, Act
// and Status are required. It is safe for concurrent use.
//
// Both methods take a request as it came and return what to answer. A request that nobody signed with one of the secrets
// gets a bare 401, so that a stranger learns nothing. People get sentences that only they see.
type SlackApp struct {
	Secrets func(ctx context.Context) ([]string, error) // signing secrets of all Slack channels
	// Act does what a person clicked and returns a sentence for them, also where there was nothing to do. The same click
	// may come twice. An error is a failure of ours: it is logged, and they are asked to try again.
	Act func(ctx context.Context, incidentID string, act SlackAct) (string, error)
	// Status says in plain text how an endpoint is, or what is wrong at present when query is empty. It says so itself
	// when there is no such endpoint.
	Status func(ctx context.Context, query string) (string, error)
	Client *http.Client     // that takes sentences to those who clicked: see NewClient; nil: they are told nothing
	Now    func() time.Time // nil: time.Now
	// Origins returns where such a sentence may go to besides https://hooks.slack.com, like "http://127.0.0.1:8065". Nil: nowhere.
	Origins func(ctx context.Context) ([]string, error)
	Log     *slog.Logger // nil: nothing is logged
}

// SlackAct is what somebody did by a button.
type SlackAct struct {
	Kind   string        // "acknowledge" or "snooze"
	For    time.Duration // of a snooze
	Author string        // "ada (Slack)"
}

// MaxSlackBody bounds a request of Slack's, in bytes. A click brings the whole message along.
const MaxSlackBody = 64 << 10

// Bounds in time. Slack shows a warning when it has no answer after 3 seconds, and a signature is good for 5 minutes:
// https://docs.slack.dev/authentication/verifying-requests-from-slack
const (
	slackActWithin    = 2 * time.Second // to check the signature and to act
	slackAnswerWithin = 700 * time.Millisecond
	slackSignedWithin = 5 * time.Minute
)

// Action answers a click: the body is a form whose "payload" is the JSON of the interaction. What comes of it is told to
// the person by the payload's response_url; the message itself is updated by the notice that the act makes. A click on
// something that is not ours is taken and ignored.
func (a *SlackApp) Action(ctx context.Context, header http.Header, body []byte) (status int, contentType string, reply []byte) {
	soon, cancel := context.WithTimeout(ctx, slackActWithin)
	defer cancel()
	if status := a.verify(soon, header, body); status != http.StatusOK {
		return status, "", nil
	}
	if c, ok := readClick(body); ok {
		a.tell(ctx, c.responseURL, a.act(soon, c))
	}
	return http.StatusOK, "", nil
}

// Command answers /rollcall: the body is a form whose "text" is what follows the command.
func (a *SlackApp) Command(ctx context.Context, header http.Header, body []byte) (status int, contentType string, reply []byte) {
	ctx, cancel := context.WithTimeout(ctx, slackActWithin)
	defer cancel()
	if status := a.verify(ctx, header, body); status != http.StatusOK {
		return status, "", nil
	}
	return http.StatusOK, "application/json", ephemeral(a.obey(ctx, readCommand(body)))
}

// verify returns 200 for a request that was signed with one of our secrets and is not an old one come again, 401 for any
// other, and 503 when we cannot tell.
func (a *SlackApp) verify(ctx context.Context, header http.Header, body []byte) int {
	stamp, signature, ok := a.signature(header)
	if !ok || len(body) > MaxSlackBody {
		return http.StatusUnauthorized
	}
	secrets, err := a.Secrets(ctx)
	if err != nil {
		a.log().ErrorContext(ctx, "signing secrets cannot be read", "error", err)
		return http.StatusServiceUnavailable
	}
	if slices.ContainsFunc(secrets, func(secret string) bool { return isSignedWith(secret, stamp, signature, body) }) {
		return http.StatusOK
	}
	return http.StatusUnauthorized
}

// signature reads the two headers that sign a request; false when one is missing, malformed or too far from our time.
func (a *SlackApp) signature(header http.Header) (stamp string, signature []byte, ok bool) {
	stamp = header.Get("X-Slack-Request-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || a.now().Sub(time.Unix(seconds, 0)).Abs() > slackSignedWithin {
		return "", nil, false
	}
	digest, ok := strings.CutPrefix(header.Get("X-Slack-Signature"), "v0=")
	if signature, err = hex.DecodeString(digest); err != nil || !ok || len(signature) != sha256.Size {
		return "", nil, false
	}
	return stamp, signature, true
}

// isSignedWith compares in constant time. slack.SecretsVerifier does the same by a clock that is not ours to set.
func isSignedWith(secret, stamp string, signature, body []byte) bool {
	if secret == "" {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:", stamp)
	mac.Write(body)
	return hmac.Equal(mac.Sum(nil), signature)
}

// click is what we take from an interaction.
type click struct {
	incident    string
	act         SlackAct
	responseURL string
}

// readClick reads the form of an interaction; false when it is not a click on a button of ours. It reads the few members
// that matter instead of a slack.InteractionCallback, which also parses the message: a block that the library does not
// know is no reason to ignore a click.
func readClick(body []byte) (click, bool) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return click{}, false
	}
	var in struct {
		Type string
		User struct {
			ID, Username, Name string
		}
		Actions []struct {
			ActionID string `json:"action_id"`
			Value    string
		}
		ResponseURL string `json:"response_url"`
	}
	err = json.Unmarshal([]byte(form.Get("payload")), &in)
	if err != nil || in.Type != string(slack.InteractionTypeBlockActions) || len(in.Actions) != 1 || !isIncidentID(in.Actions[0].Value) {
		return click{}, false
	}
	c := click{incident: in.Actions[0].Value, responseURL: in.ResponseURL}
	switch in.Actions[0].ActionID {
	case slackAcknowledge:
		c.act = SlackAct{Kind: "acknowledge"}
	case slackSnooze:
		c.act = SlackAct{Kind: "snooze", For: slackSnoozeFor}
	default:
		return click{}, false
	}
	c.act.Author = slackAuthor(in.User.Username, in.User.Name, in.User.ID)
	return c, true
}

// slackAuthor returns the first of names that says anything, and where it is from.
func slackAuthor(names ...string) string {
	for _, name := range names {
		if name = oneLine(name, 80); name != "" {
			return name + " (Slack)"
		}
	}
	return "somebody (Slack)"
}

func (a *SlackApp) act(ctx context.Context, c click) string {
	sentence, err := a.Act(ctx, c.incident, c.act)
	if err != nil {
		a.log().ErrorContext(ctx, "slack button failed", "act", c.act.Kind, "incident", c.incident, "error", err)
		return "Rollcall could not do that at the moment. Try again in a minute."
	}
	return sentence
}

// tell takes a sentence to the person who clicked. That it does not arrive is no failure of the act, which shows in the
// message, so it is logged and no more.
func (a *SlackApp) tell(ctx context.Context, responseURL, sentence string) {
	if a.Client == nil || sentence == "" || !a.mayAnswer(ctx, responseURL) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, slackAnswerWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, responseURL, bytes.NewReader(ephemeral(sentence)))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := caller{a.Client}.Do(req)
	if err != nil {
		a.log().WarnContext(ctx, "the answer to a slack button did not arrive", "error", err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
	_ = resp.Body.Close()
}

// mayAnswer reports whether an address is one that Slack gives for answers. It comes in a signed request; still, who
// knows one signing secret is not to make us call other hosts.
func (a *SlackApp) mayAnswer(ctx context.Context, address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.User != nil {
		return false
	}
	origin := u.Scheme + "://" + u.Host
	if origin == "https://hooks.slack.com" {
		return true
	}
	if a.Origins == nil {
		return false
	}
	origins, err := a.Origins(ctx)
	return err == nil && slices.Contains(origins, origin)
}

// readCommand returns what follows /rollcall, in words.
func readCommand(body []byte) []string {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil
	}
	return strings.Fields(oneLine(form.Get("text"), maxLine))
}

// slackHelp is escaped like everything else that is said.
const slackHelp = "/rollcall status says what is wrong at present.\n" +
	"/rollcall status weather says how one endpoint is, by its name or its slug.\n" +
	"/rollcall help says this."

func (a *SlackApp) obey(ctx context.Context, words []string) string {
	switch {
	case len(words) == 0 || len(words) == 1 && words[0] == "help":
		return slackHelp
	case words[0] != "status":
		return "Rollcall does not know this command.\n" + slackHelp
	}
	status, err := a.Status(ctx, strings.Join(words[1:], " "))
	if err != nil {
		a.log().ErrorContext(ctx, "slack command failed", "error", err)
		return "Rollcall cannot say at the moment. Try again in a minute."
	}
	return status
}

// ephemeral returns an answer in plain text that only the person sees who asked.
func ephemeral(text string) []byte {
	off := false
	body, err := json.Marshal(slack.WebhookMessage{
		ResponseType: slack.ResponseTypeEphemeral,
		Text:         unformatted(fitted(strings.ToValidUTF8(text, "\uFFFD"), maxText)),
		Parse:        "none", UnfurlLinks: &off, UnfurlMedia: &off,
	})
	if err != nil {
		return nil // not reached: there is nothing in it that JSON cannot say
	}
	return body
}

func (a *SlackApp) now() time.Time {
	if a.Now == nil {
		return time.Now()
	}
	return a.Now()
}

func (a *SlackApp) log() *slog.Logger {
	if a.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return a.Log
}
