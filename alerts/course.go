package alerts

import (
	"slices"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Course is the rule of incidents: what becomes of those that an endpoint is in when it has been checked. It reads no clock.
//
//   - Whatever is not up is an incident of its own severity: down, gated and degraded as soon as they hold, unknown when it has
//     lasted for Alerting.UnknownAfter. An endpoint has one of them at a time: from one severity to another it changes, and is
//     over when the endpoint is up.
//   - What cannot be told changes nothing: pending has proved nothing, and unknown neither ends an incident nor makes it worse.
//   - Of which severities channels hear, Alerting.Notify says. One that opens untold is told when it comes to such a severity.
//     Who heard of the opening hears the rest.
//   - What comes and goes is one incident, which stays open until an hour has passed without a change: see flaps.
//   - What somebody declared over stays so until the endpoint is up, or worse than it was then.
//   - A certificate or credential that ends soon is an incident beside: see expiring. So is a chain that stands still, in place
//     of one for each of its endpoints: see halted.
func Course(s store.Situation) []store.Turn {
	c := course{Situation: s, endpoint: s.Standing.Endpoint, whole: s.Standing.State, at: s.Check.Ended()}
	return slices.Concat(c.own(), c.expiring(), c.halted())
}

// course is a situation being thought through.
type course struct {
	store.Situation
	endpoint store.Endpoint
	whole    store.State // what the places add up to after the check
	at       time.Time
}

// The times of notices that are not told at once.
const (
	// behindParent is how long the opening of an endpoint waits that stands behind another, which may be about to be found
	// down: then it goes on waiting, and the parent's notice names it.
	behindParent = 30 * time.Second
	// settled is how long another severity must last to be that of the incident, unless it is worse than it ever was, and
	// another cause likewise: what goes to and fro between two bad states is no message for each time.
	settled = 5 * time.Minute
)

// own returns what becomes of the incident about the endpoint itself.
func (c course) own() []store.Turn {
	open := c.Standing.Open
	switch {
	case open == nil && c.bad():
		return c.opening()
	case open == nil:
		return nil
	case open.Flapping || c.flaps():
		return c.flapping(*open)
	case c.over():
		return []store.Turn{c.resolve(*open, store.Entry{At: c.at, Kind: store.EntryResolved, Text: c.overWords()})}
	case c.bad() && c.whole.Status != store.StatusUnknown:
		return c.change(*open)
	}
	return nil
}

// bad reports whether the endpoint is in a state that is an incident of its own.
func (c course) bad() bool {
	switch c.whole.Status {
	case store.StatusDown, store.StatusDegraded, store.StatusGated:
		return c.haltedChain() == ""
	case store.StatusUnknown:
		after := c.endpoint.Alerting.UnknownAfter
		if after == 0 {
			after = store.DefaultUnknownAfter
		}
		return c.at.Sub(c.whole.Since) >= after
	}
	return false
}

// over reports whether there is nothing wrong with the endpoint itself.
func (c course) over() bool { return c.whole.Status == store.StatusUp || c.haltedChain() != "" }

func (c course) overWords() string {
	if c.haltedChain() != "" {
		return "its whole chain stands still"
	}
	return ""
}

// opening opens an incident, or opens again the one that somebody declared over when it was not as bad.
func (c course) opening() []store.Turn {
	i := store.OpenIncident(c.Situation)
	i.SeenFrom, i.Told = c.seenFrom(), nil
	entry := store.Entry{At: c.at, Kind: store.EntryOpened, Severity: i.Severity, Cause: c.whole.Failure}
	turn := store.Turn{Opens: true}
	if hushed := c.Before.Hushed; hushed != nil {
		if !store.Graver(i.Severity, hushed.Severity) {
			return nil
		}
		turn.Opens, turn.Reopens = false, true
		i.ID, entry.Kind, entry.Text = hushed.IncidentID, store.EntryReopened, "worse than when it was declared over"
	}
	turn.Entries = []store.Entry{entry}
	turn.Tells, turn.Told = store.NoticeUpdated, c.tells(i.Severity) // NoticeOpened for those who have not heard
	turn.Notices = c.tellFirst(&i, "")
	if c.flaps() {
		c.markFlapping(&i, &turn)
	}
	turn.Incident = i
	return []store.Turn{turn}
}

// tells reports whether channels hear of a severity.
func (c course) tells(severity store.Status) bool { return c.endpoint.Alerting.Tells(severity) }

// tellFirst returns the notices by which channels first hear of an incident, with those kept ahead, unless they have heard or
// do not want to. before is the severity that it had so far, empty when it only opens: where there are only the channels of
// later steps, nobody is named as told, and a severity that was told before means that they are waiting already.
func (c course) tellFirst(i *store.Incident, before store.Status) []store.Notice {
	if len(i.Told) > 0 || !c.tells(c.whole.Status) || len(c.endpoint.Channels) == 0 && c.tells(before) {
		return nil
	}
	i.Told = slices.Compact(slices.Sorted(slices.Values(c.endpoint.Channels)))
	due := c.at
	if len(c.endpoint.DependsOn) > 0 {
		due = due.Add(behindParent)
	}
	return append(c.notices(store.NoticeOpened, i.Told, due), c.endpoint.Alerting.Ahead(i.Told, c.at)...)
}

// notices returns one for each of the channels.
func (c course) notices(kind store.NoticeKind, channels []string, due time.Time) []store.Notice {
	notices := make([]store.Notice, 0, len(channels))
	for _, channel := range channels {
		notices = append(notices, store.Notice{ChannelID: channel, Kind: kind, CreatedAt: c.at, DueAt: due})
	}
	return notices
}

// heard returns the channels that have heard of an incident: those that were told of the opening, and those of the steps whose
// time had come before anybody acknowledged it. A step that somebody put off by a snooze is counted among them: rather a good
// end that comes as news than an alarm that nobody takes back.
func (c course) heard(i store.Incident) []string {
	channels := slices.Clone(i.Told)
	if len(i.Told) > 0 || len(c.endpoint.Channels) == 0 && c.tells(i.Worst) {
		for _, step := range c.endpoint.Alerting.Escalation {
			due := i.OpenedAt.Add(step.After)
			if !due.After(c.at) && (i.AcknowledgedAt == nil || due.Before(*i.AcknowledgedAt)) {
				channels = append(channels, step.Channels...)
			}
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(channels)))
}

// dueAfterOpening returns when something is due that must not be told before the opening is.
func (c course) dueAfterOpening(i store.Incident) time.Time {
	if len(c.endpoint.DependsOn) == 0 {
		return c.at
	}
	return later(c.at, i.OpenedAt.Add(behindParent))
}

// resolve ends an incident, entries being the last of its timeline.
func (c course) resolve(i store.Incident, entries ...store.Entry) store.Turn {
	told := c.heard(i)
	turn := store.Turn{
		Entries: entries, Withdraw: true,
		Notices: c.notices(store.NoticeResolved, told, c.dueAfterOpening(i)),
		Tells:   store.NoticeResolved, Told: c.tells(i.Worst),
	}
	turn.Incident = *store.Resolve(i, c.at, c.whole.Since, store.ResolutionRecovered)
	return turn
}

// change notes what is different about an incident that goes on. What is told of it are its severity and its cause; from where
// it is seen is for the timeline.
func (c course) change(i store.Incident) []store.Turn {
	var turn store.Turn
	if seen := c.seenFrom(); len(seen) > 0 && !slices.Equal(seen, i.SeenFrom) {
		i.SeenFrom = seen
		turn.Entries = append(turn.Entries, store.Entry{At: c.at, Kind: store.EntrySeen, Text: strings.Join(seen, ", ")})
	}
	told, before := c.heard(i), i.Severity
	turn.Told = c.tells(before) || c.tells(c.whole.Status)
	switch {
	case before != c.whole.Status && c.holds(i):
		turn.Tells = store.NoticeUpdated // which is NoticeOpened for those who have not heard
		c.take(&i, &turn, store.EntrySeverity)
	case before == c.whole.Status && c.otherCause(i.Cause):
		c.take(&i, &turn, store.EntryCause)
	default:
		told = nil
	}
	if i.Severity == c.whole.Status {
		turn.Notices = c.tellFirst(&i, before)
	}
	if len(turn.Notices) > 0 {
		turn.Tells = store.NoticeUpdated // those who have subscribed have not heard either
	}
	if len(turn.Notices) == 0 {
		turn.Notices = c.notices(store.NoticeUpdated, told, c.dueAfterOpening(i))
	}
	if len(turn.Entries)+len(turn.Notices) == 0 {
		return nil
	}
	turn.Incident = i
	return []store.Turn{turn}
}

// holds reports whether the severity of the endpoint is to be that of its incident.
func (c course) holds(i store.Incident) bool {
	return store.Graver(c.whole.Status, i.Worst) || c.at.Sub(c.whole.Since) >= settled
}

// take makes the severity and the cause of an incident those of the endpoint, and notes so.
func (c course) take(i *store.Incident, turn *store.Turn, kind store.EntryKind) {
	entry := store.Entry{At: c.at, Kind: kind}
	if i.Severity != c.whole.Status {
		i.Severity, entry.Severity = c.whole.Status, c.whole.Status
	}
	if store.Graver(i.Severity, i.Worst) {
		i.Worst = i.Severity
	}
	if c.otherCause(i.Cause) {
		i.Cause, entry.Cause = *c.whole.Failure, c.whole.Failure
	}
	turn.Entries = append(turn.Entries, entry)
}

// otherCause reports whether the endpoint fails in another way than before. Other words for the same are none.
func (c course) otherCause(before probe.Failure) bool {
	f := c.whole.Failure
	return f != nil && (f.Class != before.Class || f.Code != before.Code)
}

// seenFrom returns the locations that see what the endpoint adds up to, or worse. Those that cannot tell see nothing, unless
// that is what it adds up to.
func (c course) seenFrom() []string {
	var names []string
	for _, p := range c.Standing.Places {
		status := p.State.Status
		sees := status == c.whole.Status || status != store.StatusUnknown && store.Graver(status, c.whole.Status)
		if sees && c.endpoint.ProbedFrom(p.Location) {
			names = append(names, p.Location)
		}
	}
	return names
}
