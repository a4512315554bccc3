package store

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rollcallhq/rollcall/probe"
)

// Endpoint is a target that somebody asked us to watch.
type Endpoint struct {
	ID           string
	Slug         string // part of every address of the endpoint; never changes
	Name         string
	Kind         probe.Kind
	URL          string         // empty with a Command
	Headers      []probe.Header // values are encrypted at rest
	Request      Request
	Options      probe.Options  // encrypted at rest
	Command      *probe.Command // a process to talk to in place of a URL; encrypted at rest
	Schedule     string         // what robfig/cron's standard parser reads
	Timeout      time.Duration
	DegradedOver time.Duration
	Confirm      Confirm
	Public       bool
	Paused       bool
	Tags         []string
	Channels     []string // ids
	// ContractNotices has its channels hear of a change of the tool list.
	ContractNotices bool
	// Locations are the names of the locations it is probed from; none means all that there are. Quorum is how many of them
	// must find it down for it to be down; 0 means the majority of those with a fresh result.
	Locations []string
	Quorum    int
	Alerting  Alerting
	// DependsOn are the ids of endpoints that this one stands behind: while one of them is down, its own opening waits.
	DependsOn  []string
	Objectives []Objective
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// Request is what an endpoint of kind jsonrpc is asked.
type Request struct {
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Confirm says how many checks in a row change a status, and how soon the next one follows a surprising one.
type Confirm struct {
	Failures  int
	Successes int
	After     time.Duration
}

// Defaults of an endpoint for which only a URL was given.
const (
	DefaultSchedule     = "@every 60s"
	DefaultTimeout      = probe.DefaultTimeout
	DefaultDegradedOver = 5 * time.Second
)

// DefaultConfirm makes two bad checks, five seconds apart, an outage and one good check its end.
var DefaultConfirm = Confirm{Failures: 2, Successes: 1, After: 5 * time.Second}

// NewEndpoint returns an endpoint with every default filled in, ready for somebody's own values on top.
func NewEndpoint() Endpoint {
	return Endpoint{
		Kind:         probe.KindAuto,
		Schedule:     DefaultSchedule,
		Timeout:      DefaultTimeout,
		DegradedOver: DefaultDegradedOver,
		Confirm:      DefaultConfirm,
	}
}

// Target is what a probe of e needs, with what earlier probes found out.
func (e Endpoint) Target(s State) probe.Target {
	t := probe.Target{
		Kind:         e.Kind,
		URL:          e.URL,
		Headers:      e.Headers,
		Options:      e.Options,
		Command:      e.Command,
		Method:       e.Request.Method,
		Params:       e.Request.Params,
		Era:          s.Era,
		Memory:       s.Memory,
		Timeout:      e.Timeout,
		DegradedOver: e.DegradedOver,
	}
	if t.Kind == probe.KindAuto && s.Kind != "" {
		t.Kind = s.Kind
	}
	return t
}

// Bounds of what an endpoint may hold.
const (
	maxName      = 100
	maxTags      = 20
	maxTag       = 50
	maxChannels  = 20
	maxLocations = 50
	maxLocation  = 60
	maxTimeout   = 5 * time.Minute
	maxConfirm   = 100
	maxConfirmed = time.Hour
)

// Validate returns everything that is wrong with e as an Invalid, nil when it can be kept. period reads a schedule and
// says how long it leaves between two checks at least. Whether slug and name are free, and channels exist, only the
// database knows.
func (e Endpoint) Validate(period func(schedule string) (time.Duration, error)) error {
	var problems []probe.Problem
	add := func(field, format string, args ...any) { problems = append(problems, problem(field, format, args...)) }

	problems = append(problems, nameProblems("name", e.Name)...)
	if e.Slug != "" && Slugify(e.Slug) != e.Slug {
		add("slug", "must be lower-case letters, digits and single hyphens, at most %d", maxSlug)
	}
	t := e.Target(State{})
	problems = append(problems, t.Validate()...)
	problems = append(problems, e.optionsProblems()...)
	if e.Timeout == 0 {
		add("timeout", "must be longer than zero")
	}
	if e.Timeout > maxTimeout {
		add("timeout", "must be at most %s", maxTimeout)
	}
	every, err := period(e.Schedule)
	switch {
	case err != nil:
		add("schedule", "%s", err)
	case e.Timeout > every:
		add("timeout", "%s is longer than the %s between two checks: shorten it or check less often", e.Timeout, every)
	}
	problems = append(problems, e.Confirm.problems()...)
	problems = append(problems, tagProblems(e.Tags)...)
	if len(e.Channels) > maxChannels {
		add("channels", "more than %d channels", maxChannels)
	}
	problems = append(problems, e.locationProblems()...)
	problems = append(problems, e.alertingProblems()...)
	return invalid(problems)
}

func (c Confirm) problems() []probe.Problem {
	var problems []probe.Problem
	if c.Failures < 1 || c.Failures > maxConfirm {
		problems = append(problems, problem("confirm.failures", "must be between 1 and %d", maxConfirm))
	}
	if c.Successes < 1 || c.Successes > maxConfirm {
		problems = append(problems, problem("confirm.successes", "must be between 1 and %d", maxConfirm))
	}
	if c.After <= 0 || c.After > maxConfirmed {
		problems = append(problems, problem("confirm.after", "must be longer than zero and at most %s", maxConfirmed))
	}
	return problems
}

func (e Endpoint) locationProblems() []probe.Problem {
	var problems []probe.Problem
	if len(e.Locations) > maxLocations {
		problems = append(problems, problem("locations", "more than %d locations", maxLocations))
	}
	seen := map[string]bool{}
	for i, location := range e.Locations {
		field := fmt.Sprintf("locations[%d]", i)
		problems = append(problems, LocationProblems(field, location)...)
		if seen[location] {
			problems = append(problems, problem(field, "stands there twice"))
		}
		seen[location] = true
	}
	switch {
	case e.Quorum < 0:
		problems = append(problems, problem("quorum", "must be zero, for the majority, or more"))
	case len(e.Locations) > 0 && e.Quorum > len(e.Locations):
		problems = append(problems, problem("quorum", "is larger than the %d locations", len(e.Locations)))
	case e.Quorum > maxLocations:
		problems = append(problems, problem("quorum", "must be at most %d", maxLocations))
	}
	return problems
}

// LocationProblems says what is wrong with the name of a location.
func LocationProblems(field, name string) []probe.Problem {
	switch {
	case strings.TrimSpace(name) == "" || strings.TrimSpace(name) != name:
		return []probe.Problem{problem(field, "is empty, or begins or ends with white space")}
	case utf8.RuneCountInString(name) > maxLocation:
		return []probe.Problem{problem(field, "is longer than %d characters", maxLocation)}
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.Contains(name, ","):
		return []probe.Problem{problem(field, "holds a comma or a control character")}
	}
	return nil
}

// ProbedFrom reports whether the endpoint is probed from a location.
func (e Endpoint) ProbedFrom(location string) bool {
	return len(e.Locations) == 0 || slices.Contains(e.Locations, location)
}

func nameProblems(field, name string) []probe.Problem {
	switch {
	case strings.TrimSpace(name) == "":
		return []probe.Problem{problem(field, "is required")}
	case strings.TrimSpace(name) != name:
		return []probe.Problem{problem(field, "begins or ends with white space")}
	case utf8.RuneCountInString(name) > maxName:
		return []probe.Problem{problem(field, "is longer than %d characters", maxName)}
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return []probe.Problem{problem(field, "holds control characters")}
	}
	return nil
}

func tagProblems(tags []string) []probe.Problem {
	var problems []probe.Problem
	if len(tags) > maxTags {
		problems = append(problems, problem("tags", "more than %d tags", maxTags))
	}
	seen := map[string]bool{}
	for i, tag := range tags {
		field := fmt.Sprintf("tags[%d]", i)
		switch {
		case strings.TrimSpace(tag) == "" || strings.TrimSpace(tag) != tag:
			problems = append(problems, problem(field, "is empty, or begins or ends with white space"))
		case utf8.RuneCountInString(tag) > maxTag:
			problems = append(problems, problem(field, "is longer than %d characters", maxTag))
		case !utf8.ValidString(tag) || strings.ContainsFunc(tag, unicode.IsControl) || strings.Contains(tag, ","):
			problems = append(problems, problem(field, "holds a comma or a control character"))
		case seen[tag]:
			problems = append(problems, problem(field, "stands there twice"))
		}
		seen[tag] = true
	}
	return problems
}

const maxSlug = 60

// Slugify returns the slug that text stands for: ASCII letters and digits, lower case, everything else a hyphen. Empty
// when nothing is left.
func Slugify(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= maxSlug {
			break
		}
	}
	return strings.Trim(b.String(), "-")
}

// NameFromURL returns the name of an endpoint for which none was given: its host, with the port unless it is usual.
func NameFromURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "endpoint"
	}
	return clipRunes(strings.ToLower(u.Host), maxName-4)
}

func clipRunes(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n])
}

// Numbered returns the n-th variant of a taken name or slug: "weather", "weather-2", "weather-3", …
func Numbered(base string, n int) string {
	if n < 2 {
		return base
	}
	return fmt.Sprintf("%s-%d", base, n)
}

// SlugBase returns what the slug of e is made from: its name, or its host or program where the name has no letter or digit.
func (e Endpoint) SlugBase() string {
	for _, text := range []string{e.Name, e.DefaultName()} {
		if slug := Slugify(text); slug != "" {
			return strings.Trim(slug[:min(len(slug), maxSlug-4)], "-")
		}
	}
	return "endpoint"
}

// EndpointFilter selects endpoints. Zero members do not select.
type EndpointFilter struct {
	Status     Status
	Tag        string
	Name       string     // all of the name, without regard to case
	Query      string     // part of the name, slug or URL as it is shown, without regard to case
	Kind       probe.Kind // as registered, or what an auto endpoint turned out to be
	Location   string     // it was probed from there
	PublicOnly bool
	IDs        []string // nil does not select
	Behind     string   // the id of an endpoint that they depend on
	Slugs      []string // nil does not select
	Limit      int      // as in PageLimit; negative means all
	Cursor     string
}
