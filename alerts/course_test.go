package alerts_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// TestCourse tells stories of one endpoint with two channels, that is believed at each check. A line of a story is the minute, the
// verdict (with a class behind a slash where it is another than usual) and what becomes of incidents by it, as tale.check writes it;
// no line may be followed by anything that it does not say.
func TestCourse(t *testing.T) {
	tests := []struct {
		name  string
		setup func(*store.Endpoint)
		story string
	}{
		{"what is down is told, and so is its end", nil, `
			0   up
			1   down      opens down: opened; told a b
			2   down
			9   up        ends down: resolved; over a b`},
		{"what is degraded is kept and not told", nil, `
			0   degraded  opens degraded: opened
			60  up        ends degraded: resolved`},
		{"gated is told", nil, `
			0   gated     opens gated: opened; told a b
			5   up        ends gated: resolved; over a b`},
		{"who wants to hear of degraded does", func(e *store.Endpoint) {
			e.Alerting.Notify = []store.Status{store.StatusDegraded}
		}, `
			0   degraded  opens degraded: opened; told a b
			6   up        ends degraded: resolved; over a b
			7   down      opens down: opened
			8   up        ends down: resolved`},
		{"nobody hears of anything where nothing is told", func(e *store.Endpoint) { e.Alerting.Notify = []store.Status{} }, `
			0   down      opens down: opened
			9   up        ends down: resolved`},
		{"an incident that gets worse is the same, and told when it comes to that", nil, `
			0   degraded  opens degraded: opened
			5   down      goes on down: severity; told a b
			6   up        ends down: resolved; over a b`},
		{"what gets better without being over is told when that has held", nil, `
			0   down      opens down: opened; told a b
			1   gated
			4   gated
			6   gated     goes on gated: severity; updated a b
			9   up        ends gated: resolved; over a b`},
		{"to and fro between two bad states is not told each time", nil, `
			0   down      opens down: opened; told a b
			1   degraded
			2   down
			3   degraded
			4   down
			9   up        ends down: resolved; over a b`},
		{"worse than ever is told at once", nil, `
			0   gated     opens gated: opened; told a b
			1   down      goes on down: severity; updated a b
			2   up        ends down: resolved; over a b`},
		{"another class is told when it has held, other words are not", nil, `
			0   down          opens down: opened; told a b
			1   down/dns
			4   down/dns
			6   down/dns      goes on down: cause; updated a b
			12  down/dns
			13  up            ends down: resolved; over a b`},
		{"classes that alternate are not told", nil, `
			0   down          opens down: opened; told a b
			3   down/dns
			6   down/timeout
			9   down/dns
			12  down/timeout
			15  up            ends down: resolved; over a b`},
		{"unknown for long is an incident that began when it did", nil, `
			0   up
			1   unknown
			29  unknown
			31  unknown   opens unknown: opened; told a b
			60  unknown
			61  up        ends unknown: resolved; over a b`},
		{"unknown for as long as somebody says", func(e *store.Endpoint) { e.Alerting.UnknownAfter = 5 * time.Minute }, `
			1   unknown
			5   unknown
			6   unknown   opens unknown: opened; told a b
			7   down      goes on down: severity; updated a b`},
		{"unknown ends nothing and makes nothing worse", nil, `
			0   gated     opens gated: opened; told a b
			1   unknown
			90  unknown
			91  gated
			92  up        ends gated: resolved; over a b`},
		{"reminders and escalation are kept ahead", func(e *store.Endpoint) {
			e.Alerting.RemindEvery = 30 * time.Minute
			e.Alerting.Escalation = []store.EscalationStep{
				{After: 10 * time.Minute, Channels: []string{"c", "a"}}, {After: 20 * time.Minute, Channels: []string{"c", "d", "b"}},
			}
		}, `
			0   down      opens down: opened; told a b; remind+30m a b; escalate+10m c; escalate+20m d
			11  up        ends down: resolved; over a b c; takes back`},
		{"an endpoint that stands behind another waits, and so does its end", func(e *store.Endpoint) { e.DependsOn = []string{"ep_0"} }, `
			0   down      opens down: opened; told+30s a b
			0.1 up        ends down: resolved; over+24s a b`},
		{"what comes and goes is told once, and once more when it has calmed", nil, `
			0   up
			1   down      opens down: opened; told a b
			2   up        ends down: resolved; over a b
			3   down      opens down: opened; told a b
			4   up        ends down: resolved; over a b
			5   down      opens down: opened; told a b
			6   up        goes on down, flapping: flapping; flapping a b
			7   down
			8   up
			9   down
			67  up
			68  up
			126 up
			127 up        ends down, flapping: calmed resolved; over a b
			128 down      opens down: opened; told a b`},
		{"what comes and goes may stay", nil, `
			0   up
			1   degraded  opens degraded: opened
			2   up        ends degraded: resolved
			3   degraded  opens degraded: opened
			4   up        ends degraded: resolved
			5   degraded  opens degraded: opened
			6   up        goes on degraded, flapping: flapping
			7   down      goes on down, flapping: severity; told a b
			8   up
			9   degraded
			50  degraded
			69  degraded  goes on degraded: severity calmed; calmed a b
			70  up        ends degraded: resolved; over a b`},
		{"what comes and goes and then cannot be told for long is told once, until something is known again", func(e *store.Endpoint) {
			e.Alerting.FlapChanges = 3
		}, `
			0   up
			1   down      opens down: opened; told a b
			2   up        ends down: resolved; over a b
			3   down      opens down, flapping: opened flapping; told a b; flapping a b
			4   up
			5   unknown
			34  unknown
			35  unknown   goes on unknown, flapping: severity; updated a b
			36  unknown
			40  up
			41  down      goes on down, flapping: severity
			42  up
			43  unknown
			73  unknown   goes on unknown, flapping: severity; updated a b
			160 unknown
			161 down      goes on down: severity calmed; calmed a b
			162 up        ends down: resolved; over a b`},
		{"what came and went untold is told when it cannot be told for long", func(e *store.Endpoint) {
			e.Alerting.FlapChanges = 3
		}, `
			0   up
			1   degraded  opens degraded: opened
			2   up        ends degraded: resolved
			3   degraded  opens degraded, flapping: opened flapping
			4   unknown
			34  unknown   goes on unknown, flapping: severity; told a b
			100 up        ends unknown, flapping: calmed resolved; over a b`},
		{"how many changes are too many, somebody may say", func(e *store.Endpoint) { e.Alerting.FlapChanges = 3 }, `
			0   up
			1   down      opens down: opened; told a b
			2   up        ends down: resolved; over a b
			3   down      opens down, flapping: opened flapping; told a b; flapping a b
			4   up`},
		{"changes over hours are no coming and going", nil, `
			0   up
			20  down      opens down: opened; told a b
			40  up        ends down: resolved; over a b
			60  down      opens down: opened; told a b
			80  up        ends down: resolved; over a b
			100 down      opens down: opened; told a b
			120 up        ends down: resolved; over a b
			140 down      opens down: opened; told a b`},
		{"a certificate that ends soon is an incident beside, however it stands", nil, `
			0   up+tls         opens degraded expiring: opened; told a b
			1   down           opens down: opened; told a b
			2   down
			3   up+tls         ends down: resolved; over a b
			4   unknown
			5   gated+tls      opens gated: opened; told a b
			6   up             ends gated: resolved; over a b, ends degraded expiring: resolved; over a b`},
		{"a credential that ends soon comes before a certificate", nil, `
			0   up+tls+token   opens gated expiring: opened; told a b
			1   up+tls         goes on degraded expiring: severity; updated a b
			2   up+tls+token   goes on gated expiring: severity; updated a b
			3   up             ends gated expiring: resolved; over a b`},
		{"a chain that stands still is no outage of its endpoint", nil, `
			0   up
			1   degraded/chain_halted   opens degraded chain: opened; told a b
			2   degraded/chain_halted
			3   unknown
			4   up                      leaves degraded chain: left; over a b`},
		{"an outage turns out to be the chain's", nil, `
			0   down/head_stalled       opens down: opened; told a b
			1   degraded/chain_halted   ends down: resolved; over a b, opens degraded chain: opened; told a b
			2   down                    opens down: opened; told a b, leaves degraded chain: left; over a b`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newTale()
			if tt.setup != nil {
				tt.setup(&h.standing.Endpoint)
			}
			for line := range strings.SplitSeq(strings.TrimSpace(tt.story), "\n") {
				words := strings.Fields(line)
				minute, err := time.ParseDuration(words[0] + "m")
				if err != nil {
					t.Fatal(err)
				}
				got, want := h.check(t, epoch.Add(minute), "here", words[1]), strings.Join(words[2:], " ")
				if got != want {
					t.Fatalf("%s\ngot  %q\nwant %q", strings.TrimSpace(line), got, want)
				}
			}
		})
	}
}

func TestCourseOfWhatSomebodyDeclaredOver(t *testing.T) {
	h := newTale()
	h.check(t, epoch, "here", "gated")
	id := h.standing.Open.ID
	h.standing.State.Hushed = &store.Hushed{IncidentID: id, Severity: store.StatusGated}
	h.standing.Open = nil
	minute := 0
	next := func(verdict, want string) {
		t.Helper()
		minute++
		if got := h.check(t, epoch.Add(time.Duration(minute)*time.Minute), "here", verdict); got != want {
			t.Fatalf("%s: got %q, want %q", verdict, got, want)
		}
	}
	next("gated", "")
	next("degraded", "") // no worse than it was
	next("unknown", "")
	next("gated", "")
	next("down", "opens again down: reopened; told a b")
	if h.standing.Open.ID != id {
		t.Errorf("%s is open, want %s, which was declared over", h.standing.Open.ID, id)
	}
	next("up", "ends down: resolved; over a b")
	next("gated", "opens gated: opened; told a b")

	h.standing.State.Hushed, h.standing.Open = &store.Hushed{IncidentID: h.standing.Open.ID, Severity: store.StatusGated}, nil
	next("up", "")
	next("gated", "opens gated: opened; told a b") // it was over in between
}

func TestCourseOfAnOutageSeenFromSeveralPlaces(t *testing.T) {
	h := newTale()
	steps := []struct{ location, verdict, want string }{
		{"ams", "up", ""},
		{"fra", "up", ""},
		{"lon", "up", ""},
		{"ams", "down", "opens degraded: opened"},
		{"fra", "down", "goes on down: seen severity; told a b"},
		{"lon", "degraded", ""}, // not as bad
		{"lon", "down", "goes on down: seen"},
		{"ams", "up", "goes on down: seen"},
	}
	for i, step := range steps {
		if got := h.check(t, epoch.Add(time.Duration(i)*time.Second), step.location, step.verdict); got != step.want {
			t.Fatalf("%s %s: got %q, want %q", step.location, step.verdict, got, step.want)
		}
	}
	if diff := gocmp.Diff(h.standing.Open.SeenFrom, []string{"fra", "lon"}); diff != "" {
		t.Errorf("seen from (-got +want):\n%s", diff)
	}
}

func TestCourseOfACertificateThatOnlyOnePlaceSees(t *testing.T) {
	h := newTale()
	steps := []struct{ location, verdict, want string }{
		{"ams", "up+tls", "opens degraded expiring: opened; told a b"},
		{"fra", "up", ""}, // sees another certificate
		{"ams", "up+tls", ""},
		{"fra", "up+tls", "goes on degraded expiring: seen"},
		{"ams", "up", "goes on degraded expiring: seen"},
		{"ams", "up", ""},
		{"fra", "up", "ends degraded expiring: resolved; over a b"},
	}
	for i, step := range steps {
		if got := h.check(t, epoch.Add(time.Duration(i)*time.Second), step.location, step.verdict); got != step.want {
			t.Fatalf("%s %s: got %q, want %q", step.location, step.verdict, got, step.want)
		}
	}
}

func TestCourseUnderMaintenanceTellsWhenItIsOver(t *testing.T) {
	h := newTale()
	under := true
	h.judge.Maintained = func(string, time.Time) bool { return under }
	steps := []struct {
		verdict string
		under   bool
		want    string
	}{
		{"down", true, ""},
		{"down", false, "opens down: opened; told a b"},
		{"up", true, "ends down: resolved; over a b"},
		{"degraded", false, "opens degraded: opened"},
		{"down", true, ""},
		{"down", false, "goes on down: severity; told a b"},
		{"down", false, ""},
		{"gated", true, ""},
		{"up", false, "ends down: resolved; over a b"},
		{"gated", false, "opens gated: opened; told a b"},
		{"down", true, ""},
		{"down", false, "goes on down: severity; updated a b"}, // worse than what was told
	}
	for i, step := range steps {
		under = step.under
		if got := h.check(t, epoch.Add(time.Duration(i)*time.Minute), "here", step.verdict); got != step.want {
			t.Fatalf("step %d, %s: got %q, want %q", i, step.verdict, got, step.want)
		}
	}
}

// TestCourseOverDays goes through days of checks by chance, of endpoints that are set by chance, and holds each of them against
// what must always be so.
func TestCourseOverDays(t *testing.T) {
	verdicts := []string{
		"up", "up", "up", "down", "down", "down/dns", "down/rpc_error", "degraded", "degraded/chain_halted", "gated", "unknown", "up+tls", "up+token",
	}
	resolved, reopened := 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		h := newTale()
		e := &h.standing.Endpoint
		e.Confirm = store.Confirm{Failures: 1 + rng.IntN(3), Successes: 1 + rng.IntN(2), After: time.Second}
		e.Alerting.FlapChanges = []int{0, 2, 10}[rng.IntN(3)]
		if rng.IntN(2) == 0 {
			e.DependsOn = []string{"ep_0"}
		}
		e.Alerting.Notify = [][]store.Status{nil, {store.StatusDown}, {store.StatusDegraded, store.StatusGated}, {}}[rng.IntN(4)]
		if rng.IntN(2) == 0 {
			e.Alerting.RemindEvery = time.Hour
			e.Alerting.Escalation = []store.EscalationStep{{After: 10 * time.Minute, Channels: []string{"c"}}}
		}
		locations := []string{"ams", "fra", "lon"}[:1+rng.IntN(3)]
		pace := []time.Duration{20 * time.Second, time.Minute, 7 * time.Minute}[rng.IntN(3)]
		verdict, at := "up", epoch
		for at.Before(epoch.Add(24 * time.Hour)) {
			if rng.IntN(4) == 0 {
				verdict = verdicts[rng.IntN(len(verdicts))]
			}
			location := locations[rng.IntN(len(locations))]
			h.check(t, at, location, verdict)
			if open := h.standing.Open; open != nil && rng.IntN(200) == 0 { // somebody declares it over
				h.standing.State.Hushed, h.standing.Open = &store.Hushed{IncidentID: open.ID, Severity: open.Severity}, nil
				h.declareOver(*open)
			}
			at = at.Add(time.Duration(1+rng.IntN(2000)) * pace / 1000)
			if h.wrong != "" {
				t.Fatalf("seed %d, %s after the beginning: %s\n%s", seed, at.Sub(epoch), h.wrong, strings.Join(h.log[max(0, len(h.log)-20):], "\n"))
			}
		}
		resolved, reopened = resolved+h.resolved, reopened+h.reopened
	}
	if resolved < 500 || reopened < 5 {
		t.Errorf("%d incidents ended and %d opened again, want more to have been tried", resolved, reopened)
	}
}

// tale is an endpoint and what became of it, as a store would keep it.
type tale struct {
	standing store.Standing
	judge    store.Judge
	log      []string

	open     map[string]store.Incident // by subject
	told     map[string]map[string]int // openings less ends, by incident and channel
	said     map[string][]time.Time    // when a channel was told what is not kept ahead
	resolved int
	reopened int
	wrong    string // the first thing that may not be
}

func newTale() *tale {
	e := store.NewEndpoint()
	e.ID, e.Slug, e.Name, e.Channels = "ep_1", "weather", "Weather", []string{"b", "a"}
	e.Confirm = store.Confirm{Failures: 1, Successes: 1}
	return &tale{
		standing: store.Standing{Endpoint: e, State: store.State{Status: store.StatusPending, Since: epoch.Add(-time.Hour)}},
		judge:    rules, open: map[string]store.Incident{}, told: map[string]map[string]int{}, said: map[string][]time.Time{},
	}
}

// check enters a check and returns what became of incidents by it.
func (h *tale) check(t *testing.T, at time.Time, location, verdict string) string {
	t.Helper()
	l := store.Ledger{Standings: map[string]*store.Standing{"ep_1": &h.standing}, Now: at.Add(time.Second)}
	entries := l.Enter([]store.Check{checkOf(at, location, verdict)}, h.judge)
	var words []string
	for _, turn := range entries.Turns {
		h.note(turn, at)
		words = append(words, turnWords(turn, at))
	}
	h.log = append(h.log, fmt.Sprintf("%s %s %s: %s", at.Sub(epoch), location, verdict, strings.Join(words, ", ")))
	return strings.Join(words, ", ")
}

func checkOf(at time.Time, location, words string) store.Check {
	parts := strings.Split(words, "+")
	verdict, class, _ := strings.Cut(parts[0], "/")
	usual := map[string]probe.Class{
		"down": probe.ClassConnect, "degraded": probe.ClassSlow, "gated": probe.ClassAuthRequired, "unknown": probe.ClassRateLimited,
	}
	r := probe.Result{StartedAt: at, Verdict: probe.Verdict(verdict), Kind: "evm"}
	r.Memory.Head = &probe.Head{Chain: "1", Height: 1, Seen: at}
	if verdict != "up" {
		r.Failure = &probe.Failure{Step: "eth_blockNumber", Class: cmp.Or(probe.Class(class), usual[verdict]), Message: at.String()}
	}
	for _, soon := range parts[1:] {
		r.Warnings = append(r.Warnings, probe.Warning{
			Class: map[string]probe.Class{"tls": probe.ClassTLSExpiring, "token": probe.ClassCredentialExpiring}[soon], Message: "soon, at " + at.String(),
		})
	}
	return store.NewCheck("ep_1", location, at, r)
}

// turnWords writes what becomes of an incident: "opens down: opened; told a b".
func turnWords(turn store.Turn, at time.Time) string {
	i := turn.Incident
	how := "goes on"
	switch {
	case turn.Opens:
		how = "opens"
	case turn.Reopens:
		how = "opens again"
	case turn.Leaves:
		how = "leaves"
	case i.ResolvedAt != nil:
		how = "ends"
	}
	words := how + " " + string(i.Severity)
	if i.Kind != store.IncidentEndpoint {
		words += " " + string(i.Kind)
	}
	if i.Flapping {
		words += ", flapping"
	}
	kinds := make([]string, 0, len(turn.Entries))
	for _, e := range turn.Entries {
		kinds = append(kinds, string(e.Kind))
	}
	words += ": " + strings.Join(kinds, " ")
	names := map[store.NoticeKind]string{
		store.NoticeOpened: "told", store.NoticeResolved: "over", store.NoticeReminder: "remind", store.NoticeEscalation: "escalate",
	}
	last := ""
	for _, n := range turn.Notices {
		what := cmp.Or(names[n.Kind], string(n.Kind))
		if later := n.DueAt.Sub(at); later > 0 {
			what += "+" + strings.TrimSuffix(later.String(), "m0s")
			if later%time.Minute == 0 {
				what += "m"
			}
		}
		if what != last {
			words += "; " + what
		}
		words, last = words+" "+n.ChannelID, what
	}
	if slices.ContainsFunc(turn.Notices, func(n store.Notice) bool { return n.ChannelID == "c" }) && turn.Withdraw {
		words += "; takes back"
	}
	return words
}

// note holds a turn against what must always be so.
func (h *tale) note(turn store.Turn, at time.Time) {
	i := turn.Incident
	fail := func(format string, args ...any) {
		if h.wrong == "" {
			h.wrong = fmt.Sprintf(format, args...)
		}
	}
	before, open := h.open[i.Subject]
	over := i.ResolvedAt != nil
	switch {
	case (turn.Opens || turn.Reopens) == open:
		fail("%s opens: %t, while one of it is open: %t", i.Subject, turn.Opens || turn.Reopens, open)
	case open && before.ID != i.ID:
		fail("%s changes, while %s is open", i.ID, before.ID)
	case !slices.Contains(store.Severities(), i.Severity) || store.Graver(i.Severity, i.Worst) || i.Cause.Class == "":
		fail("severity %q, worst %q, cause %q", i.Severity, i.Worst, i.Cause.Class)
	case i.StartedAt.After(at) || over && i.ResolvedAt.Before(i.StartedAt):
		fail("from %s to %v, at %s", i.StartedAt, i.ResolvedAt, at)
	case over != turn.Withdraw:
		fail("over: %t, while what is kept ahead is taken back: %t", over, turn.Withdraw)
	case i.Kind == store.IncidentEndpoint && over && h.standing.State.Status != store.StatusUp && h.standing.State.Failure.Class != probe.ClassChainHalted:
		fail("over while %s", h.standing.State.Status)
	}
	h.open[i.Subject] = i
	if over {
		delete(h.open, i.Subject)
		h.resolved++
	}
	if turn.Reopens {
		h.reopened++
	}
	h.hear(turn, at, fail)
}

// hear keeps account of what each channel was told.
func (h *tale) hear(turn store.Turn, at time.Time, fail func(string, ...any)) {
	i := turn.Incident
	told := h.told[i.ID]
	if told == nil {
		told = map[string]int{}
		h.told[i.ID] = told
	}
	for _, n := range turn.Notices {
		switch n.Kind {
		case store.NoticeOpened:
			told[n.ChannelID]++
		case store.NoticeResolved:
			told[n.ChannelID]--
		}
		if got := told[n.ChannelID]; n.ChannelID != "c" && (got < 0 || got > 1 || n.Kind != store.NoticeResolved && got != 1) {
			fail("%s of %s to %s, who heard %d openings more than ends", n.Kind, i.ID, n.ChannelID, got)
		}
		if i.Kind == store.IncidentEndpoint && !n.Kind.Ahead() {
			h.saidTo(n.ChannelID, at, fail)
		}
	}
	if i.ResolvedAt == nil {
		return
	}
	for channel, left := range told {
		if left > 0 && channel != "c" {
			fail("%s heard that %s began, and not that it is over", channel, i.ID)
		}
	}
}

// saidTo bounds what a channel hears of one endpoint within an hour: the changes that make it a flapping one, those of severity and
// cause that have held for five minutes, and somebody who declares it over each time.
func (h *tale) saidTo(channel string, at time.Time, fail func(string, ...any)) {
	said := append(h.said[channel], at)
	said = slices.DeleteFunc(said, func(t time.Time) bool { return at.Sub(t) > time.Hour })
	h.said[channel] = said
	if len(said) > 24 {
		fail("%s heard %d times within an hour", channel, len(said))
	}
}

// declareOver takes away what somebody resolved, who tells the channels.
func (h *tale) declareOver(i store.Incident) {
	delete(h.open, i.Subject)
	delete(h.told, i.ID)
}
