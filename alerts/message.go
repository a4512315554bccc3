package alerts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Kind says what a message tells.
type Kind string

// The kinds of messages.
const (
	KindOpened     Kind = "opened"
	KindUpdated    Kind = "updated"    // an incident changed: its severity, its cause, or somebody acted on it
	KindReminder   Kind = "reminder"   // it is still open
	KindEscalation Kind = "escalation" // it is still open and nobody has acknowledged it: the first that this channel hears of it
	KindFlapping   Kind = "flapping"   // it comes and goes: one message instead of one for each change
	KindCalmed     Kind = "calmed"     // it no longer comes and goes
	KindResolved   Kind = "resolved"
	KindDigest     Kind = "digest"   // many incidents at once
	KindContract   Kind = "contract" // the tool list of an MCP server changed
	KindBudget     Kind = "budget"   // an objective's error budget burns too fast
	KindService    Kind = "service"  // something about this service itself
	KindTest       Kind = "test"     // sent because somebody pressed the test button
)

// Message is what there is to say, in words and free of any channel's markup. Every text in it is one line of valid
// UTF-8 without control characters, but otherwise hostile: it may hold whatever a monitored server chose to answer, so a
// sender escapes all of it. An empty text has nothing to say and is left out.
type Message struct {
	Kind     Kind
	ID       string // of the notice: the same when the same message comes again
	Incident string // id, the same for all messages of one incident; empty where there is none
	Severity string // down, degraded, gated, unknown, maintenance or notice; empty where there is none
	Open     bool   // the incident is not over

	Symbol     string // 🔴 🟢 ⚪ 🔔 🟠 🟡 🔵: how it stands, at a glance
	Title      string // "Weather is down"
	Meaning    string // what it likely means, in a sentence
	Update     string // what happened to the incident, in a sentence: "Acknowledged by ada."
	Act        string // what somebody did to it, such as "acknowledged", "snoozed" or "commented"; empty when the endpoint changed
	Calm       bool   // Update tells of a change that is none for the worse: nobody need be woken for it
	State      string // how it stands, in a word or two: "down", "halted", "recovered"
	About      string // name of what it is about, also where that is no endpoint: "Weather", "Ethereum (evm 1)", "Location fra"
	Endpoint   string // name
	URL        string // of the endpoint, keys cut out
	Step       string // that failed, such as "tools/list"
	Class      string
	Code       string   // the JSON-RPC error code or HTTP status, in digits
	Said       string   // the error in the server's own words
	Location   string   // of ours, that the message is about
	SeenFrom   []string // locations that see it
	Dependents []string // names of endpoints behind this one that are not well either, and are not told of by themselves
	Since      time.Time
	Until      time.Time // zero while it lasts
	Lasted     string    // "12 minutes 4 seconds", empty while it lasts
	Outcome    string    // "Recovered after 12 minutes 4 seconds.", empty while it lasts
	Changes    []string  // of the tool list, one line each, the most serious first
	Items      []Item    // of a digest, the most serious first
	Acts       bool      // people may acknowledge and snooze it, where the channel has buttons
	Acted      bool      // Update is word of what somebody did: acknowledged, snoozed, commented
	Link       string    // where to look; an absolute URL
	LinkText   string    // what following Link is for; empty: to look at it in this service
	// Unsubscribe ends these messages for one recipient with one click (RFC 8058); an absolute URL, empty where there is none.
	Unsubscribe string
}

// Item is one line of a digest.
type Item struct {
	Symbol string
	Title  string // "Weather is down"
	Said   string
	Link   string
}

// Bounds of the changes that a message names.
const (
	maxChanges = 10
	maxChange  = 140 // characters of one
)

// newEventMessage words an event: a change of the tool list, which opens and ends nothing, or something about this
// service itself, for which e is zero.
func newEventMessage(ev store.Event, e store.Endpoint, publicURL string) Message {
	switch ev.Kind {
	case store.EventLocationOffline, store.EventLocationOnline:
		return newLocationMessage(ev, publicURL)
	case store.EventChannelBroken:
		return newBrokenMessage(ev, publicURL)
	}
	m := Message{
		Kind:     KindContract,
		Symbol:   symbols[ev.Severity],
		Since:    happened(ev),
		Endpoint: oneLine(e.Name, maxLine),
		URL:      oneLine(probe.RedactURL(e.URL), maxURL),
		Link:     link(publicURL, "endpoints", e.Slug),
	}
	m.Title = m.Endpoint + ": " + oneLine(lowerFirst(ev.Title), maxLine)
	var data store.ContractChanged
	if json.Unmarshal(ev.Data, &data) != nil {
		return m // the title says what is known
	}
	if ev.Severity == string(probe.RankBreaking) {
		m.Meaning = "Clients that use these tools as they were may fail. The server itself answers."
	}
	shown := data.Changes[:min(len(data.Changes), maxChanges)]
	for _, c := range shown {
		m.Changes = append(m.Changes, changeLine(c))
	}
	if more := len(data.Changes) - len(shown) + data.More; more > 0 {
		m.Changes = append(m.Changes, fmt.Sprintf("… and %d more", more))
	}
	return m
}

// happened returns when an event happened, zero where that is not known.
func happened(ev store.Event) time.Time {
	if ev.At.IsZero() {
		return time.Time{}
	}
	return ev.At.UTC()
}

// newBrokenMessage words that nothing more is sent to a channel: the others say so.
func newBrokenMessage(ev store.Event, publicURL string) Message {
	m := Message{
		Kind: KindService, Symbol: "🟠", Title: oneLine(ev.Title, maxLine), Since: happened(ev), Link: link(publicURL, "channels"),
		Meaning: "Nothing more is sent there until somebody corrects it and saves it. What waits is sent then.",
	}
	var data struct {
		Channel string `json:"channel"`
		Reason  string `json:"reason"`
	}
	if json.Unmarshal(ev.Data, &data) == nil {
		m.Said = oneLine(data.Reason, probe.MaxMessage)
		if data.Channel != "" {
			m.Link = link(publicURL, "channels", data.Channel)
		}
	}
	return m
}

// locationData is what an event holds that tells of one of our locations.
type locationData struct {
	Location  string     `json:"location"`
	Since     time.Time  `json:"since"` // when it lost its network
	Until     *time.Time `json:"until"` // when it was back; null while it is not
	Endpoints int        `json:"endpoints"`
}

// newLocationMessage words that a location lost its own network, or that it is back. The first may come from another
// instance while it lasts, or from the location itself when it is over: it says when it began and what follows from it.
func newLocationMessage(ev store.Event, publicURL string) Message {
	m := Message{Kind: KindService, Symbol: "🟡", Title: oneLine(ev.Title, maxLine), State: "offline", Since: happened(ev), Link: link(publicURL)}
	if ev.Kind == store.EventLocationOnline {
		m.Symbol, m.State = "🔵", "online"
	}
	var data locationData
	if json.Unmarshal(ev.Data, &data) != nil || data.Location == "" {
		return m // the title says what is known
	}
	m.Location = oneLine(data.Location, maxLine)
	m.About = "Location " + m.Location
	if !data.Since.IsZero() {
		m.Since = data.Since.UTC()
	}
	if data.Until != nil {
		m.Until, m.Lasted = data.Until.UTC(), inWords(data.Until.Sub(m.Since))
	}
	its := "Its checks"
	if data.Endpoints > 0 {
		its = "Its checks of " + counted(int64(data.Endpoints), "endpoint")
	}
	if ev.Kind == store.EventLocationOnline {
		m.Title = "Location " + m.Location + " has its network back"
		m.Meaning = its + " count again. Those made meanwhile counted as unknown."
		if m.Lasted != "" {
			m.Outcome = "It had been without for " + m.Lasted + "."
		}
		return m
	}
	m.Title = "Location " + m.Location + " lost its network at " + m.Since.Format("15:04 MST")
	m.Meaning = its + " count as unknown until it is back: what fails is most likely on our side. Other locations are not affected."
	return m
}

// symbols say at a glance how serious an event is.
var symbols = map[string]string{
	string(probe.RankBreaking): "🟠",
	string(probe.RankWarning):  "🟡",
	string(probe.RankInfo):     "🔵",
}

func changeLine(c probe.Change) string {
	words := string(c.Rank) + ": "
	if c.Tool != "" {
		words += oneLine(c.Tool, maxChange/3) + ": "
	}
	if c.Path != "" {
		words += oneLine(c.Path, maxChange/3) + ": "
	}
	return oneLine(words+c.Message, maxChange)
}

func lowerFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToLower(r)) + s[size:]
}

// NewTestMessage words the message behind a channel's test button.
func NewTestMessage(c store.Channel, publicURL string) Message {
	return Message{
		Kind:    KindTest,
		Symbol:  "🔔",
		Title:   "Rollcall can reach this channel",
		Meaning: fmt.Sprintf("This is a test of the channel “%s”. Nothing is wrong.", oneLine(c.Name, maxLine)),
		Link:    link(publicURL),
	}
}

// Text returns the whole message as plain text, for channels and clients that show nothing better.
func (m Message) Text() string {
	lines := []string{m.Symbol + " " + m.Title, m.Outcome, m.Update, m.Meaning}
	lines = append(lines, m.lists()...)
	lines = append(lines, m.facts()...)
	lines = append(lines, m.whereToLook())
	return strings.Join(nonEmpty(lines), "\n")
}

// whereToLook returns the link of m for those who see it as text, with what it is for where the sentences do not say it.
func (m Message) whereToLook() string {
	if m.Link == "" || m.LinkText == "" {
		return m.Link
	}
	return m.LinkText + ": " + m.Link
}

// linkText says what the link of m is for.
func (m Message) linkText() string { return cmp.Or(m.LinkText, "Open in Rollcall") }

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

// link returns publicURL with more of a path, empty when there is no usable publicURL.
func link(publicURL string, path ...string) string {
	u, err := url.Parse(publicURL)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.JoinPath(path...).String()
}

// Bounds of a line, in characters. Names and steps are short; a URL may be long and still be of use.
const (
	maxLine = 200
	maxURL  = 300
)

// oneLine makes a stranger's text fit for a message: one line, valid UTF-8, at most n characters, without control
// characters and without those that turn the direction of writing or hide.
func oneLine(text string, n int) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	})
	line := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) {
			return -1
		}
		return r
	}, strings.Join(words, " "))
	if utf8.RuneCountInString(line) <= n {
		return line
	}
	return string([]rune(line)[:n-1]) + "…"
}

// inWords returns how long something lasted in its two largest units.
func inWords(d time.Duration) string {
	d = d.Round(time.Second)
	if d < time.Second {
		return "less than a second"
	}
	units := []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}}
	for i, unit := range units {
		if d < unit.length {
			continue
		}
		words := counted(int64(d/unit.length), unit.name)
		if rest := d % unit.length; i+1 < len(units) && rest >= units[i+1].length {
			words += " " + counted(int64(rest/units[i+1].length), units[i+1].name)
		}
		return words
	}
	return "" // not reached: d is at least a second
}

func counted(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
