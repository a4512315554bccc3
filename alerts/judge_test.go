package alerts_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// TestJudge feeds verdicts, one a minute, through store.Advance. What is wanted stands below each verdict: the status
// after that check, @ the number of the check at which the status began, + where an incident opens, - where it
// resolves.
func TestJudge(t *testing.T) {
	confirm := func(failures, successes int) store.Confirm {
		return store.Confirm{Failures: failures, Successes: successes, After: time.Second}
	}
	tests := []struct {
		name    string
		confirm store.Confirm
		checks  string
		want    string
	}{
		{
			"the first good check is believed", confirm(2, 1),
			"up",
			"up@0",
		}, {
			"the first bad check of a new endpoint is not proof", confirm(2, 1),
			"down      down",
			"pending@_ down@0+",
		}, {
			"the first gated check is believed", confirm(3, 3),
			"gated   gated",
			"gated@0 gated@0",
		}, {
			"the first unknown check is believed to be unknown", confirm(2, 1),
			"unknown   up",
			"unknown@0 up@1",
		}, {
			"one bad check is not proof", confirm(2, 1),
			"up   down up",
			"up@0 up@0 up@0",
		}, {
			"an outage begins at its first bad check", confirm(3, 1),
			"up   down down down",
			"up@0 up@0 up@0 down@1+",
		}, {
			"a good check begins the count again", confirm(3, 1),
			"up   down down up   down down",
			"up@0 up@0 up@0 up@0 up@0 up@0",
		}, {
			"one check is proof where one is asked for", confirm(1, 1),
			"up   down    up",
			"up@0 down@1+ up@2-",
		}, {
			"an outage lasts until enough good checks", confirm(2, 3),
			"up   down down    up     up     up",
			"up@0 up@0 down@1+ down@1 down@1 up@3-",
		}, {
			"a bad check begins the way back again", confirm(2, 2),
			"up   down down    up     down   up     up",
			"up@0 up@0 down@1+ down@1 down@1 down@1 up@5-",
		}, {
			"an unknown check does not end an outage", confirm(2, 1),
			"up   down down    unknown unknown unknown up",
			"up@0 up@0 down@1+ down@1  down@1  down@1  up@6-",
		}, {
			"an unknown check on the way back is passed over", confirm(2, 2),
			"up   down down    up     unknown up",
			"up@0 up@0 down@1+ down@1 down@1  up@3-",
		}, {
			"an unknown check between two bad ones does not clear the endpoint", confirm(2, 1),
			"up   down unknown   down",
			"up@0 up@0 unknown@1 down@1+",
		}, {
			"unknown checks alone are no outage", confirm(2, 1),
			"up   unknown unknown   unknown",
			"up@0 up@0    unknown@1 unknown@1",
		}, {
			"a degraded check in front of an outage is not its beginning", confirm(2, 1),
			"up   degraded down       down",
			"up@0 up@0     degraded@1 down@2+",
		}, {
			"a degraded answer ends an outage", confirm(2, 1),
			"up   down down    degraded    degraded",
			"up@0 up@0 down@1+ degraded@3- degraded@3",
		}, {
			"credentials asked for end an outage", confirm(2, 1),
			"up   down down    gated    up",
			"up@0 up@0 down@1+ gated@3- up@4",
		}, {
			"checks that differ bear out what is closest to the present", confirm(2, 2),
			"up   down down    up     degraded    degraded   up         up",
			"up@0 up@0 down@1+ down@1 degraded@3- degraded@3 degraded@3 up@6",
		}, {
			"degraded needs as much proof as down", confirm(3, 1),
			"up   degraded degraded degraded   up",
			"up@0 up@0     up@0     degraded@1 up@4",
		}, {
			"a second outage is a second incident", confirm(2, 1),
			"up   down down    up    down down    up",
			"up@0 up@0 down@1+ up@3- up@3 down@4+ up@6-",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHistory(tt.confirm)
			var got []string
			for i, verdict := range strings.Fields(tt.checks) {
				h.check(probe.Verdict(verdict), epoch.Add(time.Duration(i)*time.Minute))
				got = append(got, h.latest())
			}
			if diff := cmp.Diff(got, strings.Fields(tt.want)); diff != "" {
				t.Errorf("after %s (-got +want):\n%s", tt.checks, diff)
			}
		})
	}
}

func TestJudgeKeepsTheReasonOfTheFirstBadCheck(t *testing.T) {
	h := newHistory(store.Confirm{Failures: 2, Successes: 1})
	h.check(probe.Up, epoch)
	h.judge(checkAt(epoch.Add(time.Minute), probe.Down, probe.ClassDNS))
	h.judge(checkAt(epoch.Add(2*time.Minute), probe.Down, probe.ClassTimeout))

	if got, want := h.state.Failure.Class, probe.ClassDNS; got != want {
		t.Errorf("class of the status = %s, want %s", got, want)
	}
	if got, want := h.opened[0].Cause.Class, probe.ClassDNS; got != want {
		t.Errorf("class of the incident = %s, want %s", got, want)
	}
	h.check(probe.Up, epoch.Add(3*time.Minute))
	if h.state.Failure != nil {
		t.Errorf("failure of an endpoint that is up = %+v, want none", h.state.Failure)
	}
}

func TestJudgeGivesAReasonThatBelongsToTheStatus(t *testing.T) {
	h := newHistory(store.Confirm{Failures: 2, Successes: 2})
	h.check(probe.Up, epoch)
	h.check(probe.Down, epoch.Add(time.Minute))
	h.check(probe.Degraded, epoch.Add(2*time.Minute))

	if got, want := h.state.Status, store.StatusDegraded; got != want {
		t.Fatalf("status = %s, want %s", got, want)
	}
	if got, want := h.state.Failure.Class, probe.ClassSlow; got != want {
		t.Errorf("class of a degraded status = %s, want that of the degraded check, %s", got, want)
	}
}

func TestJudgeDoesNotBridgeOurOwnDowntime(t *testing.T) {
	e := store.NewEndpoint()
	began := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	check := func(after time.Duration) store.Check {
		return store.Check{ID: "chk_" + after.String(), Result: probe.Result{
			StartedAt: began.Add(after), Verdict: probe.Down, Failure: &probe.Failure{Class: probe.ClassConnect},
		}}
	}
	s := store.State{Status: store.StatusUp, Since: began.Add(-time.Hour), LastCheckAt: began.Add(-time.Minute)}
	for _, after := range []time.Duration{0, 48 * time.Hour} {
		s = advance(e, s, check(after))
		if s.Status != store.StatusUp || s.Streak.Count != 1 {
			t.Fatalf("after a bad check %s on: status %s, streak of %d; want up, with a streak of 1", after, s.Status, s.Streak.Count)
		}
	}
	s = advance(e, s, check(48*time.Hour+5*time.Second))
	if want := began.Add(48 * time.Hour); s.Status != store.StatusDown || !s.Since.Equal(want) {
		t.Errorf("status %s since %s, want down since %s: the first of two bad checks in a row", s.Status, s.Since, want)
	}
}

func TestJudgePassesOverALateArrival(t *testing.T) {
	h := newHistory(store.Confirm{Failures: 1, Successes: 1})
	h.check(probe.Up, epoch.Add(time.Hour))
	before := h.state

	got := alerts.Judge(h.endpoint, before, checkAt(epoch, probe.Down, probe.ClassDNS))
	if diff := cmp.Diff(got, before); diff != "" {
		t.Errorf("state after a check from an hour ago (-got +want):\n%s", diff)
	}
}

func TestJudgeLeavesAnOpenIncidentOfAnEditedEndpointUntilItIsProved(t *testing.T) {
	h := newHistory(store.Confirm{Failures: 2, Successes: 1})
	for i, v := range []probe.Verdict{probe.Up, probe.Down, probe.Down} {
		h.check(v, epoch.Add(time.Duration(i)*time.Minute))
	}
	h.state = store.State{Status: store.StatusPending, Since: epoch.Add(3 * time.Minute)} // as an edit leaves it

	h.check(probe.Unknown, epoch.Add(4*time.Minute))
	if h.open == nil {
		t.Fatal("an unknown check resolved the incident")
	}
	h.check(probe.Up, epoch.Add(5*time.Minute))
	if h.open != nil {
		t.Error("a good check left the incident open")
	}
}

// TestJudgeOverDays simulates days of checks with random verdicts, confirmations and pauses between them, and holds
// every step against rules that are worked out from the list of checks alone.
func TestJudgeOverDays(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			h := newHistory(store.Confirm{Failures: 1 + rng.IntN(4), Successes: 1 + rng.IntN(4)})
			began := time.Now()
			for time.Since(began) < 3*24*time.Hour {
				h.check(randomVerdict(rng, h.state.Status), time.Now())
				if msg := h.broken(); msg != "" {
					t.Fatalf("seed %d, failures %d, successes %d: %s\nafter %s", seed, h.endpoint.Confirm.Failures,
						h.endpoint.Confirm.Successes, msg, h.tail())
				}
				time.Sleep(time.Duration(1+rng.IntN(3600)) * time.Second)
			}
		})
	}
}

// randomVerdict stays with the present status more often than not, so that streaks of every length come up.
func randomVerdict(rng *rand.Rand, status store.Status) probe.Verdict {
	if rng.IntN(5) < 2 && status != store.StatusPending && status != "" {
		return probe.Verdict(status)
	}
	return []probe.Verdict{probe.Up, probe.Up, probe.Degraded, probe.Gated, probe.Unknown, probe.Down, probe.Down}[rng.IntN(7)]
}

var epoch = time.Date(2026, time.November, 21, 8, 0, 0, 0, time.UTC)

// history is what a store would keep of one endpoint.
type history struct {
	endpoint store.Endpoint
	checks   []store.Check
	prev     store.State // before the latest check
	state    store.State
	open     *store.Incident
	opened   []store.Incident
	resolved []store.Incident
	advanced store.Advanced  // by the latest check
	began    *store.Incident // by the latest check
	over     *store.Incident
	impure   string
}

func newHistory(confirm store.Confirm) *history {
	e := store.NewEndpoint()
	e.ID, e.Slug, e.Name, e.Confirm = "ep_1", "weather", "Weather", confirm
	e.Channels = []string{"ch_1", "ch_2"}
	return &history{endpoint: e}
}

func checkAt(at time.Time, verdict probe.Verdict, class probe.Class) store.Check {
	r := probe.Result{StartedAt: at, Duration: time.Second, Verdict: verdict}
	if verdict != probe.Up {
		r.Failure = &probe.Failure{Step: "tools/list", Class: class, Message: at.String()}
	}
	return store.NewCheck("ep_1", "default", at, r)
}

func (h *history) check(verdict probe.Verdict, at time.Time) {
	class := map[probe.Verdict]probe.Class{
		probe.Down: probe.ClassConnect, probe.Degraded: probe.ClassSlow, probe.Gated: probe.ClassAuthRequired,
		probe.Unknown: probe.ClassRateLimited,
	}[verdict]
	h.judge(checkAt(at, verdict, class))
}

func (h *history) judge(c store.Check) {
	h.prev = h.state
	before := clone(h.state)
	once, again := alerts.Judge(h.endpoint, h.state, c), alerts.Judge(h.endpoint, h.state, c)
	h.impure = cmp.Diff(once, again) + cmp.Diff(h.state, before)

	standing := store.Standing{Endpoint: h.endpoint, State: wholeOf(h.state), Open: h.open, Places: []store.Place{place(h.state)}}
	h.advanced = store.Advance(&standing, c, plain, c.Result.StartedAt)
	h.checks = append(h.checks, c)
	h.state = standing.Places[0].State
	h.began, h.over = nil, nil
	for _, turn := range h.advanced.Turns {
		if i := turn.Incident; turn.Opens {
			h.began, h.open, h.opened = &i, &i, append(h.opened, i)
		} else {
			h.over, h.open, h.resolved = &i, nil, append(h.resolved, i)
		}
	}
}

// notices are those that the latest check left to be delivered.
func (h *history) notices() []store.Notice {
	notices := slices.Clone(h.advanced.Notices)
	for _, turn := range h.advanced.Turns {
		notices = append(notices, turn.Notices...)
	}
	return notices
}

// rules are those of this package, with a period of a minute.
var rules = alerts.Rules(func(string) (time.Duration, error) { return time.Minute, nil })

// plain are the same without the rule of incidents: what is down is one, and nothing else.
var plain = store.Judge{Check: rules.Check, Vote: rules.Vote}

// place is the only one of an endpoint.
func place(s store.State) store.Place {
	return store.Place{EndpointID: "ep_1", Location: "default", State: s}
}

// wholeOf is what a lone place adds up to.
func wholeOf(s store.State) store.State {
	return store.State{Status: s.Status, Since: s.Since, Failure: s.Failure}
}

// advance returns the state of a lone place after a check.
func advance(e store.Endpoint, s store.State, c store.Check) store.State {
	standing := store.Standing{Endpoint: e, State: wholeOf(s), Places: []store.Place{{State: s}}}
	store.Advance(&standing, c, rules, c.Result.StartedAt)
	return standing.Places[0].State
}

// clone copies a state with everything that it points to.
func clone(s store.State) store.State {
	for _, f := range []**probe.Failure{&s.Failure, &s.Streak.Failure, &s.Down.Failure} {
		if *f != nil {
			c := **f
			*f = &c
		}
	}
	return s
}

// latest writes the outcome of the latest check as the tables above do.
func (h *history) latest() string {
	began := "_"
	for i, c := range h.checks {
		if c.Result.StartedAt.Equal(h.state.Since) {
			began = fmt.Sprint(i)
		}
	}
	text := string(h.state.Status) + "@" + began
	if h.began != nil {
		text += "+"
	}
	if h.over != nil {
		text += "-"
	}
	return text
}

func (h *history) tail() string {
	var verdicts []string
	for _, c := range h.checks[max(0, len(h.checks)-12):] {
		verdicts = append(verdicts, string(c.Result.Verdict))
	}
	return strings.Join(verdicts, " ") + " → " + string(h.state.Status)
}

// broken names the first rule that the latest check broke.
func (h *history) broken() string {
	var (
		confirm     = h.endpoint.Confirm
		latest      = h.checks[len(h.checks)-1].Result
		changed     = h.prev.Status != "" && h.prev.Status != store.StatusPending && h.prev.Status != h.state.Status
		downs, from = h.trailing(func(v probe.Verdict) bool { return v == probe.Down })
		goods, back = h.trailing(func(v probe.Verdict) bool { return v != probe.Down })
		ups         = h.trailingUps()
	)
	switch {
	case h.impure != "":
		return "the judge is not pure: " + h.impure
	case changed && h.state.Status == store.StatusDown && downs < confirm.Failures:
		return fmt.Sprintf("down after %d bad checks", downs)
	case changed && h.prev.Status == store.StatusDown && goods < confirm.Successes:
		return fmt.Sprintf("no longer down after %d good checks", goods)
	case changed && latest.Verdict == probe.Unknown && h.prev.Status == store.StatusDown:
		return "an unknown check ended an outage"
	case downs >= confirm.Failures && h.state.Status != store.StatusDown:
		return fmt.Sprintf("not down after %d bad checks", downs)
	case ups >= confirm.Successes && (h.state.Status == store.StatusDown || h.state.Status == store.StatusUnknown):
		return fmt.Sprintf("no better after %d good checks", ups)
	case ups >= 2*confirm.Successes && h.state.Status != store.StatusUp:
		return fmt.Sprintf("not up after %d good checks", ups) // the first ones may bear out something in between
	case string(h.state.Status) == string(latest.Verdict) && h.state.Unsettled():
		return "unsettled though the latest check agrees"
	case (h.state.Failure == nil) != (h.state.Status == store.StatusUp || h.state.Status == store.StatusPending):
		return fmt.Sprintf("status %s with failure %+v", h.state.Status, h.state.Failure)
	case h.began != nil && h.over != nil:
		return "one check both opened and resolved"
	case h.began != nil && !h.began.StartedAt.Equal(from):
		return fmt.Sprintf("an outage that began at %s starts at %s", from, h.began.StartedAt)
	case h.over != nil && !h.over.ResolvedAt.Equal(back):
		return fmt.Sprintf("an outage that ended at %s ends at %s", back, h.over.ResolvedAt)
	case (h.open != nil) != (h.state.Status == store.StatusDown):
		return fmt.Sprintf("status %s with open incident: %t", h.state.Status, h.open != nil)
	case len(h.opened)-len(h.resolved) < 0 || len(h.opened)-len(h.resolved) > 1:
		return fmt.Sprintf("%d incidents opened, %d resolved", len(h.opened), len(h.resolved))
	case len(h.notices()) != 0 && h.began == nil && h.over == nil:
		return "notices of nothing"
	case (h.began != nil || h.over != nil) && len(h.notices()) != len(h.endpoint.Channels):
		return fmt.Sprintf("%d notices for %d channels", len(h.notices()), len(h.endpoint.Channels))
	}
	return ""
}

// trailing counts the latest checks that are all of one sort, unknown ones passed over, and says when they began.
func (h *history) trailing(sort func(probe.Verdict) bool) (n int, since time.Time) {
	for i := len(h.checks) - 1; i >= 0; i-- {
		r := h.checks[i].Result
		if r.Verdict == probe.Unknown {
			continue
		}
		if !sort(r.Verdict) {
			break
		}
		n, since = n+1, r.StartedAt
	}
	return n, since
}

func (h *history) trailingUps() int {
	n := 0
	for n < len(h.checks) && h.checks[len(h.checks)-1-n].Result.Verdict == probe.Up {
		n++
	}
	return n
}
