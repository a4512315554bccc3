package api

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// badge is what a badge says, before it is drawn.
type badge struct {
	label   string
	message string
	tone    tone
}

// badgeNobody is the message of a badge that has nothing to say, and all that is told of endpoints that are not public.
const badgeNobody = "unknown"

// badgeKind is a kind of badge. Label is what stands on it unless the reader wants something else; it must not depend on the
// endpoint, which may be hidden. Ask is what has to be known for it, of the endpoint that the slug names, and say what it
// says then: no message where there is nothing to say.
type badgeKind struct {
	name  string // in its address
	label func(q badgeQuery) string
	ask   func(q badgeQuery) badgeAsk
	say   func(f badgeFacts) (message string, t tone)
	// usual is the window where none is asked for; empty for a kind that looks at no window.
	usual string
}

// badgeKinds are all of them.
var badgeKinds = []badgeKind{
	{name: "status", label: always("status"), ask: askState, say: sayStatus},
	{name: "uptime", label: windowLabel("uptime"), ask: askUptime, say: sayUptime, usual: "30d"},
	{name: "latency", label: latencyLabel, ask: askLatency, say: sayLatency, usual: "24h"},
	{name: "slo", label: objectiveLabel, ask: askObjective, say: sayObjective},
	{name: "protocol", label: always("protocol"), ask: askState, say: sayProtocol},
	{name: "tools", label: always("tools"), ask: askState, say: sayTools},
	{name: "height", label: always("height"), ask: askState, say: sayHeight},
}

// badgeKindOf returns a kind by its name; the zero one when there is none.
func badgeKindOf(name string) badgeKind {
	for _, k := range badgeKinds {
		if k.name == name {
			return k
		}
	}
	return badgeKind{}
}

// badgeQuery is what the query of a badge asks for.
type badgeQuery struct {
	label     string // empty: that of the kind
	style     style
	theme     theme
	window    window // zero for a kind that looks at none
	quantile  string
	objective string
	wrong     string // what is wrong with the rest, in words that fit on a badge; empty when nothing is
}

// maxBadgeQuery bounds a query, in bytes. Browsers and proxies pass no more than that for certain.
const maxBadgeQuery = 8 << 10

// readBadgeQuery reads a query. Parameters that badges do not know are passed over: readers add them to get past caches.
func readBadgeQuery(k badgeKind, raw string) badgeQuery {
	q := badgeQuery{style: styles[0], theme: themes[0], quantile: quantileNames[0]}
	if k.usual != "" {
		q.window, _ = windowOf(k.usual)
	}
	if len(raw) > maxBadgeQuery {
		q.wrong = "query too long"
		return q
	}
	values, _ := url.ParseQuery(raw) // what cannot be read is left out
	refuse := func(parameter string) {
		if q.wrong == "" {
			q.wrong = "unknown " + parameter
		}
	}
	q.label = badgeText(values.Get("label"), maxLabel)
	if name := values.Get("style"); name != "" && !pick(&q.style, styles, func(s style) bool { return s.name == name }) {
		refuse("style")
	}
	if name := values.Get("theme"); name != "" && !pick(&q.theme, themes, func(t theme) bool { return t.name == name }) {
		refuse("theme")
	}
	if name := values.Get("window"); name != "" && k.usual != "" && !pick(&q.window, windows, func(w window) bool { return w.name == name }) {
		refuse("window")
	}
	if name := values.Get("quantile"); name != "" && k.name == "latency" && !pick(&q.quantile, quantileNames, func(n string) bool { return n == name }) {
		refuse("quantile")
	}
	if name := values.Get("objective"); len(name) <= maxBadgeSlug && store.Slugify(name) == name {
		q.objective = name
	} else { // as one that is hidden
		q.objective = "-"
	}
	return q
}

// pick sets into to the first of list that fits, and reports whether there is one.
func pick[T any](into *T, list []T, fits func(T) bool) bool {
	for _, one := range list {
		if fits(one) {
			*into = one
			return true
		}
	}
	return false
}

// badge answers with the badge of the endpoint in the path. One that is not public and one that is not there give the same
// bytes and are remembered in the same way: nothing about either is told. A badge stands in somebody's page, where an error
// would be a broken picture: whatever is wrong, there is a picture.
func (s *Server) badge(c echo.Context) error {
	name, suffix, _ := strings.Cut(strings.TrimPrefix(c.Path(), badgePath), ".")
	kind := badgeKindOf(name)
	q := readBadgeQuery(kind, c.Request().URL.RawQuery)
	badgeHeaders(c)

	b := badge{cmp.Or(q.label, kind.label(q)), cmp.Or(q.wrong, badgeNobody), toneGrey}
	if q.wrong != "" {
		return s.showBadge(c, b, q, suffix, nil, 0)
	}
	ask := kind.ask(q)
	ask.slug = c.Param("slug")
	facts, of, edition, err := s.badges.facts(c.Request().Context(), ask)
	if err != nil { // which the memory has said in the log; caches are to ask again
		c.Response().Header().Set("Cache-Control", "no-cache")
	}
	if facts.public {
		if message, t := kind.say(facts); message != "" {
			b.message, b.tone = message, t
		}
	}
	return s.showBadge(c, b, q, suffix, of, edition)
}

// badgeHeaders sets the headers of a badge. One that is opened by itself is a document in a sandbox: browsers refuse to show those
// under a Cross-Origin-Opener-Policy, and there is nothing in it that could lead elsewhere with a Referer.
func badgeHeaders(c echo.Context) {
	shared(c, badgeCache)
	h := c.Response().Header()
	h.Set("Content-Security-Policy", badgePolicy)
	h.Del("Cross-Origin-Opener-Policy")
	h.Del("Referrer-Policy")
}

// badgePath is where badges are; badgeCache is how long they may be kept.
const (
	badgePath  = "/badge/:slug/"
	badgeCache = "public, max-age=60, stale-while-revalidate=300"
)

// shield is what shields.io reads, and nothing else: it refuses members that it does not know.
type shield struct {
	SchemaVersion int    `json:"schemaVersion"`
	Label         string `json:"label"`
	Message       string `json:"message"`
	Color         string `json:"color"`
}

// showBadge draws a badge and answers with it.
func (s *Server) showBadge(c echo.Context, b badge, q badgeQuery, suffix string, of *badgeMemo, edition uint64) error {
	p := picture{contentType: "image/svg+xml; charset=utf-8", known: of, edition: edition}
	if suffix == "json" {
		text, err := encode(shield{1, b.label, b.message, strings.TrimPrefix(b.tone.light, "#")})
		if err != nil {
			return err
		}
		p.contentType, p.body = "application/json", text
	} else {
		p.body = b.draw(q.style, q.theme)
	}
	if err := cached(c, p.contentType, p.body); err != nil {
		return err
	}
	s.pictures.keep(c, p)
	return nil
}

// maxLabel bounds a label, in characters: a badge is one line of a page. maxMessage bounds what an endpoint says of itself.
const (
	maxLabel   = 40
	maxMessage = 24
)

// badgeText returns text without what could not be drawn, or would make more than one line, cut to so many characters.
func badgeText(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) { // unprintable: controls, and marks that turn the direction of text
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most-1]) + "…"
	}
	return text
}

func always(label string) func(badgeQuery) string { return func(badgeQuery) string { return label } }

func windowLabel(label string) func(badgeQuery) string {
	return func(q badgeQuery) string { return label + " " + q.window.name }
}

// latencyLabel names the quantile unless it is the usual one.
func latencyLabel(q badgeQuery) string {
	if q.quantile == quantileNames[0] {
		return "latency " + q.window.name
	}
	return q.quantile + " latency " + q.window.name
}

func objectiveLabel(q badgeQuery) string {
	if q.objective == "" || q.objective == "-" {
		return "slo"
	}
	return q.objective
}

func askState(badgeQuery) badgeAsk    { return badgeAsk{matter: matterState} }
func askUptime(q badgeQuery) badgeAsk { return badgeAsk{matter: matterUptime, which: q.window.name} }
func askObjective(q badgeQuery) badgeAsk {
	return badgeAsk{matter: matterObjective, which: q.objective}
}
func askLatency(q badgeQuery) badgeAsk {
	return badgeAsk{matter: matterLatency, which: q.window.name + " " + q.quantile}
}

var statusTones = map[store.Status]tone{
	store.StatusUp:       toneGreen,
	store.StatusDegraded: toneAmber,
	store.StatusDown:     toneRed,
	store.StatusGated:    toneBlue,
	store.StatusUnknown:  toneGrey,
	store.StatusPending:  toneGrey,
	store.StatusPaused:   toneGrey,
}

func sayStatus(f badgeFacts) (message string, t tone) { return string(f.status), statusTones[f.status] }

func sayUptime(f badgeFacts) (message string, t tone) {
	if !f.measured {
		return "", toneGrey
	}
	return percentText(f.value), uptimeTone(f.value)
}

func sayLatency(f badgeFacts) (message string, t tone) {
	if !f.measured {
		return "", toneGrey
	}
	return latencyText(f.value), toneBlue
}

func sayObjective(f badgeFacts) (message string, t tone) {
	if f.objective == nil || f.objective.Attained == nil {
		return "", toneGrey
	}
	return percentText(*f.objective.Attained), budgetTone(*f.objective)
}

func sayProtocol(f badgeFacts) (message string, t tone) { return f.protocol, toneBlue }

func sayTools(f badgeFacts) (message string, t tone) {
	if f.tools < 0 {
		return "", toneGrey
	}
	return strconv.Itoa(f.tools), toneBlue
}

func sayHeight(f badgeFacts) (message string, t tone) {
	if !f.hasHeight {
		return "", toneGrey
	}
	return groupedText(f.height), toneBlue
}

// protocolText names what an endpoint speaks: the version of MCP or another protocol that it agreed to, the id of its chain, or
// the version of JSON-RPC where a request was answered in it. What it says of itself is anything.
func protocolText(kind probe.Kind, f probe.Facts, verdict probe.Verdict) string {
	version := badgeText(f.ProtocolVersion, maxMessage)
	switch {
	case version != "" && kind == probe.KindMCP:
		return badgeText("MCP "+version, maxMessage)
	case version != "":
		return version
	case f.ChainID != "":
		return badgeText("chain "+badgeText(f.ChainID, maxMessage), maxMessage)
	case kind == probe.KindJSONRPC && (verdict == probe.Up || verdict == probe.Degraded):
		return "JSON-RPC 2.0"
	}
	return ""
}

// groupedText writes a number with a comma between thousands.
func groupedText(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// percentText writes an uptime with as many digits as it takes to tell it from 100 %, up to three. What is not 100 % never says
// that it is.
func percentText(percent float64) string {
	if percent >= 99.9 && percent < 100 {
		return trimZeros(fmt.Sprintf("%.3f", min(percent, 99.999))) + "%"
	}
	return trimZeros(fmt.Sprintf("%.2f", math.Floor(percent*100)/100)) + "%"
}

func trimZeros(number string) string { return strings.TrimRight(strings.TrimRight(number, "0"), ".") }

func uptimeTone(percent float64) tone {
	switch {
	case percent >= 99.9:
		return toneGreen
	case percent >= 99:
		return toneOlive
	case percent >= 95:
		return toneAmber
	}
	return toneRed
}

// budgetTone says at a glance how much of the budget is left: enough, little, or none.
func budgetTone(o ObjectiveState) tone {
	left := 100.0
	if o.BudgetLeft != nil {
		left = *o.BudgetLeft
	}
	switch {
	case left <= 0, *o.Attained < o.Objective.Target:
		return toneRed
	case left < 25, o.Burning != "":
		return toneAmber
	}
	return toneGreen
}

func latencyText(ms float64) string {
	switch {
	case ms < 9.95:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}
