package alerts_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// TestVote holds what places add up to against what is wanted. A place is written "fra down 10": its location, its status
// and for how many minutes it has been so; "stale" behind that means that it was last checked half an hour ago. before is what they
// added up to so far, since two hours ago unless it says otherwise. What is wanted are status, minutes, and words of the
// failure.
func TestVote(t *testing.T) {
	tests := []struct {
		name   string
		quorum int
		before string
		places string
		want   string
		why    string // the message of the failure; empty for none
	}{
		{"all are up", 0, "up", "ams up 500, fra up 400, lon up 300", "up 120", ""},
		{"both of two are down", 0, "up", "ams down 3, fra down 1", "down 1", "of ams"},
		{"one of two is not a majority", 0, "up", "ams up 500, fra down 3", "degraded 3", "seen from fra only (1 of 2 locations): of fra"},
		{"one of three is not a majority", 0, "up", "ams up 500, fra down 3, lon up 300", "degraded 3", "seen from fra only (1 of 3 locations): of fra"},
		{"two of three are", 0, "degraded 9", "ams down 9, fra down 3, lon up 300", "down 3", "of ams"},
		{"a tie of four is none", 0, "up", "ams down 9, fra down 3, lon up 300, nyc up 300", "degraded 3", "seen from ams, fra only (2 of 4 locations): of ams"},
		{"three of five are", 0, "up", "ams down 9, fra down 3, lon up 300, nyc down 1, sin up 9", "down 1", "of ams"},
		{"two of five are not", 0, "up", "ams down 9, fra down 3, lon up 300, nyc up 100, sin up 90", "degraded 3", "seen from ams, fra only (2 of 5 locations): of ams"},
		{"an outage begins when the quorum is complete, and later places do not move it", 0, "down 3", "ams down 9, fra down 3, lon down 1", "down 3", "of ams"},
		{"an outage all at once begins with the place that made it one", 0, "up", "ams down 9, fra down 3, lon down 1", "down 3", "of ams"},

		{"a quorum of one takes one place", 1, "up", "ams up 500, fra down 3, lon up 300", "down 3", "of fra"},
		{"a quorum of three is not met by two", 3, "up", "ams down 9, fra down 3, lon up 300", "degraded 3", "seen from ams, fra only (2 of 3 locations): of ams"},
		{"a quorum of three is met by three", 3, "degraded 9", "ams down 9, fra down 3, lon down 2", "down 2", "of ams"},
		{"a quorum of two of five is met by two", 2, "up", "ams down 9, fra down 3, lon up 300, nyc up 100, sin up 90", "down 3", "of ams"},
		{"a quorum is not met while too few have a say", 3, "degraded 100", "ams down 90, fra down 80, lon up 300 stale", "degraded 100", "of ams"},
		{"one place alone is no quorum of two", 2, "up", "ams down 9, fra up 300 stale", "degraded 9", "seen from ams only (1 of 1 locations): of ams"},
		{"what is down stays so when its quorum goes stale", 2, "down", "ams down 300, fra down 300 stale, lon up 500 stale", "down 120", "before"},
		{"a quorum larger than what there is, is all of it", 9, "degraded 9", "ams down 9, fra down 3", "down 3", "of ams"},
		{"a quorum larger than what has a say is not met while one contradicts", 3, "up", "ams down 9, fra up 300, lon up 300 stale", "degraded 9", "seen from ams only (1 of 2 locations): of ams"},

		{"stale places do not vote", 0, "up", "ams up 500 stale, fra down 3, lon up 300 stale", "down 3", "of fra"},
		{"stale places do not hold an endpoint down", 0, "down 300", "ams down 300 stale, fra up 3, lon down 300 stale", "up 3", ""},
		{"an outage does not begin before those left who stood against it", 0, "degraded 100", "ams up 500 stale, fra down 100", "down 30", "of fra"},
		{"nothing changes while nobody has a say", 0, "degraded", "ams up 500 stale, fra down 500 stale", "degraded 120", "before"},

		{"unknown abstains", 0, "up", "ams unknown 9, fra down 3, lon down 1", "down 1", "of fra"},
		{"unknown is no majority for either side", 0, "up", "ams unknown 9, fra down 3, lon up 300", "degraded 3", "seen from fra only (1 of 2 locations): of fra"},
		{"unknown does not hide that the others are up", 0, "up", "ams unknown 9, fra up 300, lon up 300", "up 120", ""},
		{"unknown is all that is known", 0, "up", "ams unknown 9, fra unknown 3", "unknown 3", "of ams"},
		{"unknown does not end an outage", 0, "down", "ams unknown 9, fra unknown 3", "down 120", "before"},
		{"an outage ends though one place cannot tell", 0, "down", "ams unknown 9, fra up 3", "up 3", ""},

		{"pending has no say", 0, "up", "ams pending 200 stale, fra up 300, lon up 200", "up 120", ""},
		{"nothing is known while all are pending", 0, "pending 1", "ams pending 1, fra pending 1", "pending 1", "before"},
		{"nobody is down on account of a place that is still being asked", 0, "pending 1", "ams pending 1, fra down 1", "pending 1", "before"},
		{"a pending place does not keep a majority of all from being one", 0, "pending 1", "ams pending 1, fra down 1, lon down 1", "down 1", "of fra"},
		{"a pending place that nobody checks any more is not waited for", 0, "pending 200", "ams pending 200 stale, fra down 100", "down 100", "of fra"},
		{"a pending place does not keep the others from being up", 0, "pending 1", "ams pending 1, fra up 1", "up 1", ""},
		{"a pending place does not end an outage by a majority of the rest", 0, "down 9", "ams pending 1, fra down 9", "down 9", "before"},

		{"recovery begins with the place that ended the outage", 0, "down 60", "ams down 90, fra up 2, lon up 500", "degraded 2", "seen from ams only (1 of 3 locations): of ams"},
		{"all well again begins with the last place to recover", 0, "degraded 60", "ams up 4, fra up 2, lon up 500", "up 2", ""},
		{"no status begins before the one whose place it takes", 0, "degraded 7", "ams up 400, fra up 300", "up 7", ""},

		{"gated needs a majority", 0, "up", "ams gated 9, fra gated 3, lon up 300", "gated 3", "of ams"},
		{"gated at one place is seen from there only", 0, "up", "ams gated 9, fra up 300, lon up 300", "degraded 9", "seen from ams only (1 of 3 locations): of ams"},
		{"down at one place comes before gated at two", 0, "up", "ams gated 9, fra gated 8, lon down 3", "degraded 3", "seen from lon only (1 of 3 locations): of lon"},
		{"degraded at one place is degraded", 0, "up", "ams degraded 9, fra up 300, lon up 300", "degraded 9", "seen from ams only (1 of 3 locations): of ams"},
		{"degraded at all places is not seen from some only", 0, "up", "ams degraded 9, fra degraded 3", "degraded 3", "of ams"},
		{"a failure names three locations at most", 0, "up", "ams down 9, fra down 3, lon down 2, nyc down 1, osl up 9, par up 9, rio up 9, sin up 9", "degraded 1",
			"seen from ams, fra, lon and 1 more only (4 of 8 locations): of ams"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := store.NewEndpoint()
			e.Quorum = tt.quorum
			before := standing(t, "all "+tt.before)
			if tt.before == "degraded" || strings.HasPrefix(tt.before, "down") || strings.HasPrefix(tt.before, "pending") {
				before.State.Failure.Message = "before"
			}
			var places []store.Place
			for text := range strings.SplitSeq(tt.places, ", ") {
				places = append(places, standing(t, text))
			}
			got := rules.Vote(e, before.State, places, epoch)
			said := fmt.Sprintf("%s %g", got.Status, epoch.Sub(got.Since).Minutes())
			if said != tt.want {
				t.Errorf("got %s, want %s", said, tt.want)
			}
			why := ""
			if got.Failure != nil {
				why = got.Failure.Message
			}
			if why != tt.why {
				t.Errorf("got failure %q, want %q", why, tt.why)
			}
			for i, text := range strings.Split(tt.places, ", ") {
				if diff := cmp.Diff(places[i].State, standing(t, text).State); diff != "" {
					t.Errorf("the vote changed a place (-got +want):\n%s", diff)
				}
			}
			if again := rules.Vote(e, got, places, epoch); cmp.Diff(again, got) != "" {
				t.Errorf("the same places say something else when asked again:\n%s", cmp.Diff(again, got))
			}
		})
	}
}

// standing reads a place as the table writes it.
func standing(t *testing.T, text string) store.Place {
	t.Helper()
	words := append(strings.Fields(text), "120")
	ago, err := time.ParseDuration(words[2] + "m")
	if err != nil {
		t.Fatalf("place %q: %v", text, err)
	}
	p := store.Place{Location: words[0], State: store.State{
		Status: store.Status(words[1]), Since: epoch.Add(-ago), LastCheckAt: epoch.Add(-time.Minute),
	}}
	if slices.Contains(words, "stale") {
		p.State.LastCheckAt = epoch.Add(-30 * time.Minute)
	}
	if p.State.Status != store.StatusUp {
		p.State.Failure = &probe.Failure{Class: probe.ClassConnect, Message: "of " + p.Location}
	}
	return p
}

// TestVoteOfManyPlaces holds votes of places made up by chance against rules that are counted anew.
func TestVoteOfManyPlaces(t *testing.T) {
	statuses := []store.Status{
		store.StatusUp, store.StatusUp, store.StatusDown, store.StatusDown, store.StatusDegraded, store.StatusGated, store.StatusUnknown, store.StatusPending,
	}
	seen := map[store.Status]int{}
	for seed := range uint64(20_000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		e := store.NewEndpoint()
		e.Quorum = max(0, rng.IntN(8)-3)
		before := standing(t, fmt.Sprintf("all %s %d", statuses[rng.IntN(len(statuses))], rng.IntN(300))).State
		var places []store.Place
		say, say2, down, waiting := 0, 0, 0, 0 // say2: those of them that are not up
		for i := range 2 + rng.IntN(5) {
			stale := rng.IntN(4) == 0
			status := statuses[rng.IntN(len(statuses))]
			text := fmt.Sprintf("l%d %s %d", i, status, rng.IntN(300))
			if stale {
				text += " stale"
			}
			p := standing(t, text)
			places = append(places, p)
			switch {
			case status == store.StatusPending && (!stale || epoch.Sub(p.State.Since) < 2*time.Minute+45*time.Second):
				waiting++
			case stale || status == store.StatusPending || status == store.StatusUnknown:
			default:
				say++
				if status != store.StatusUp {
					say2++
				}
				if status == store.StatusDown {
					down++
				}
			}
		}
		got := rules.Vote(e, before, places, epoch)
		seen[got.Status]++
		needed := say/2 + 1
		if e.Quorum > 0 {
			needed = min(e.Quorum, len(places))
		}
		wrong := ""
		switch {
		case got.Status == store.StatusDown && before.Status != store.StatusDown && (say == 0 || down < needed):
			wrong = "down without a quorum"
		case got.Status != store.StatusDown && say > 0 && down >= needed && waiting == 0:
			wrong = "a quorum and nobody to wait for, and not down"
		case got.Status == store.StatusUp && before.Status != store.StatusUp && (say == 0 || say2 > 0):
			wrong = "up though not all that have a say are"
		case before.Status == store.StatusDown && got.Status != store.StatusDown && say == 0:
			wrong = "an outage ended by nobody"
		case got.Since.After(epoch):
			wrong = "a status that has not begun"
		case got.Status != before.Status && got.Since.Before(before.Since):
			wrong = "a status that began before the one whose place it takes"
		case (got.Failure == nil) != (got.Status == store.StatusUp) && got.Status != before.Status:
			wrong = "a failure that does not go with the status"
		}
		rng.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
		if other := rules.Vote(e, before, places, epoch); other.Status != got.Status || !other.Since.Equal(got.Since) {
			wrong = "another outcome when the places are asked in another order"
		}
		if wrong != "" {
			t.Fatalf("seed %d: %s: %s since %s, before %s since %s, quorum %d, of %d down %d, waiting %d", seed, wrong, got.Status, got.Since,
				before.Status, before.Since, e.Quorum, say, down, waiting)
		}
	}
	for _, status := range statuses {
		if seen[status] < 100 {
			t.Errorf("only %d votes ended %s", seen[status], status)
		}
	}
}

func TestAPlaceIsStaleOnceItMissedTwoChecks(t *testing.T) {
	e := store.NewEndpoint() // every 60 s, 15 s for one check
	up := standing(t, "ams up 500")
	for ago, want := range map[time.Duration]store.Status{
		2*time.Minute + 45*time.Second: store.StatusDegraded,
		2*time.Minute + 46*time.Second: store.StatusDown,
		-time.Minute:                   store.StatusDegraded, // by another machine's clock
	} {
		up.State.LastCheckAt = epoch.Add(-ago)
		got := rules.Vote(e, store.State{Status: store.StatusUp}, []store.Place{up, standing(t, "fra down 3")}, epoch)
		if got.Status != want {
			t.Errorf("last checked %s ago: status %s, want %s", ago, got.Status, want)
		}
	}
}

func TestAScheduleThatCannotBeReadCountsAsAMinute(t *testing.T) {
	asked := 0
	judge := alerts.Rules(func(string) (time.Duration, error) {
		asked++
		return 0, errors.New("unreadable")
	})
	for range 3 {
		judge.Vote(store.NewEndpoint(), store.State{Status: store.StatusUp}, []store.Place{standing(t, "ams up 1"), standing(t, "fra up 1")}, epoch)
	}
	if asked != 1 {
		t.Errorf("the period of one schedule was worked out %d times, want once", asked)
	}
}

// TestOnePlaceThatAlternatesOpensNoIncident goes through the whole of it: checks, places and what they add up to.
func TestOnePlaceThatAlternatesOpensNoIncident(t *testing.T) {
	s := newStanding("ams", "fra", "lon")
	var statuses []store.Status
	for minute := range 60 {
		verdict := probe.Up
		if minute%6 >= 3 { // three bad checks, three good ones
			verdict = probe.Down
		}
		for _, location := range []string{"ams", "lon"} {
			s.check(t, location, minute, probe.Up)
		}
		s.check(t, "fra", minute, verdict)
		if last := len(statuses) - 1; last < 0 || statuses[last] != s.State.Status {
			statuses = append(statuses, s.State.Status)
		}
	}
	if s.opened != 0 || s.notices != 0 {
		t.Errorf("%d incidents, %d notices; want none", s.opened, s.notices)
	}
	if !slices.Contains(statuses, store.StatusDegraded) || slices.Contains(statuses, store.StatusDown) {
		t.Errorf("statuses %v, want up and degraded by turns", statuses)
	}
}

func TestAnOutageSeenFromMostPlacesIsOneIncident(t *testing.T) {
	s := newStanding("ams", "fra", "lon")
	for minute := range 5 {
		for _, location := range []string{"ams", "fra", "lon"} {
			s.check(t, location, minute, probe.Up)
		}
	}
	for minute := 5; minute < 15; minute++ { // fra sees it first, ams two minutes later, lon never
		s.check(t, "fra", minute, probe.Down)
		ams := probe.Up
		if minute >= 7 {
			ams = probe.Down
		}
		s.check(t, "ams", minute, ams)
		s.check(t, "lon", minute, probe.Up)
	}
	if s.Open == nil || s.opened != 1 || s.notices != 1 {
		t.Fatalf("%d incidents with %d notices, open: %v; want one of each, open", s.opened, s.notices, s.Open)
	}
	if want := epoch.Add(7 * time.Minute); !s.Open.StartedAt.Equal(want) || !strings.HasPrefix(s.Open.Cause.Message, epoch.Add(5*time.Minute).String()) {
		t.Errorf("it started at %s because of %q; want %s, because of what fra saw first", s.Open.StartedAt, s.Open.Cause.Message, want)
	}
	for minute := 15; minute < 20; minute++ {
		s.check(t, "ams", minute, probe.Up)
		s.check(t, "fra", minute, probe.Down)
		s.check(t, "lon", minute, probe.Up)
	}
	if s.Open != nil || s.resolved == nil || !s.resolved.ResolvedAt.Equal(epoch.Add(15*time.Minute)) {
		t.Errorf("resolved %+v, want at the first good check from ams", s.resolved)
	}
	if s.State.Status != store.StatusDegraded || !strings.HasPrefix(s.State.Failure.Message, "seen from fra only (1 of 3 locations): ") {
		t.Errorf("status %s because of %+v, want degraded at fra only", s.State.Status, s.State.Failure)
	}
}

// TestAPlaceThatIsNoLongerProbedFromHasNoSay takes a location out of the list of an endpoint.
func TestAPlaceThatIsNoLongerProbedFromHasNoSay(t *testing.T) {
	s := newStanding("ams", "fra", "lon")
	for minute := range 3 {
		s.check(t, "ams", minute, probe.Up)
		s.check(t, "fra", minute, probe.Down)
		s.check(t, "lon", minute, probe.Up)
	}
	if s.State.Status != store.StatusDegraded {
		t.Fatalf("status %s, want degraded", s.State.Status)
	}
	s.Endpoint.Locations = []string{"ams", "lon"}
	s.check(t, "ams", 3, probe.Up)
	if s.State.Status != store.StatusUp || s.State.Failure != nil {
		t.Errorf("status %s because of %+v, want up", s.State.Status, s.State.Failure)
	}
}

// several is an endpoint with several places, and what became of it.
type several struct {
	store.Standing
	opened, notices int
	resolved        *store.Incident
}

func newStanding(locations ...string) *several {
	e := store.NewEndpoint()
	e.ID, e.Channels, e.Locations = "ep_1", []string{"ch_1"}, locations
	return &several{Standing: store.Standing{Endpoint: e, State: store.State{Status: store.StatusPending, Since: epoch}}}
}

// check takes in a check that ends in the minute given.
func (s *several) check(t *testing.T, location string, minute int, verdict probe.Verdict) {
	t.Helper()
	c := checkAt(epoch.Add(time.Duration(minute)*time.Minute), verdict, probe.ClassConnect)
	c.Location = location
	a := store.Advance(&s.Standing, c, plain, c.Result.StartedAt)
	for _, turn := range a.Turns {
		s.notices += len(turn.Notices)
		if i := turn.Incident; turn.Opens {
			s.opened, s.Open = s.opened+1, &i
		} else {
			s.resolved, s.Open = &i, nil
		}
	}
}
