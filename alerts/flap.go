package alerts

import (
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// calmAfter is how long an endpoint that came and went must be one or the other for that to have ended.
const calmAfter = time.Hour

// flaps reports whether the endpoint comes and goes: it turned from well to not well, or back, Alerting.FlapChanges times
// within the last hour.
func (c course) flaps() bool {
	changes := c.endpoint.Alerting.FlapChanges
	if changes == 0 {
		changes = store.DefaultFlapChanges
	}
	recent := 0
	for _, flip := range c.whole.Flips {
		if c.at.Sub(flip) < calmAfter {
			recent++
		}
	}
	return recent >= changes
}

// calm reports whether an hour has passed without a change.
func (c course) calm() bool {
	flips := c.whole.Flips
	return len(flips) == 0 || c.at.Sub(flips[len(flips)-1]) >= calmAfter
}

// flapping returns what becomes of an incident that comes and goes, or begins to. While it does it stays open, also when the
// endpoint is up, and as serious as it was at worst: one message says that it comes and goes in place of one for each change. It
// has calmed when nothing has changed for an hour, which is the end of it when the endpoint is up. What cannot be told for
// Alerting.UnknownAfter is told once: nobody should go on believing that it comes and goes.
func (c course) flapping(i store.Incident) []store.Turn {
	switch {
	case !i.Flapping:
		turn := store.Turn{Told: c.tells(i.Worst)}
		c.worsen(&i, &turn)
		c.markFlapping(&i, &turn)
		turn.Incident = i
		return []store.Turn{turn}
	case c.bad() && c.whole.Status == store.StatusUnknown && i.Severity != store.StatusUnknown:
		return []store.Turn{c.unseen(i)}
	case !c.calm():
		return c.stillFlapping(i)
	case c.over():
		return []store.Turn{c.resolve(i,
			store.Entry{At: c.at, Kind: store.EntryCalmed},
			store.Entry{At: c.at, Kind: store.EntryResolved, Text: c.overWords()})}
	case c.bad() && c.whole.Status != store.StatusUnknown:
		return []store.Turn{c.calmed(i)}
	}
	return nil // what it is at present cannot be told
}

// markFlapping notes that an incident comes and goes and tells those who have heard of it, once.
func (c course) markFlapping(i *store.Incident, turn *store.Turn) {
	i.Flapping = true
	turn.Entries = append(turn.Entries, store.Entry{At: c.at, Kind: store.EntryFlapping})
	turn.Notices = append(turn.Notices, c.notices(store.NoticeFlapping, c.heard(*i), c.dueAfterOpening(*i))...)
	turn.Tells = store.NoticeFlapping // which is NoticeOpened for those who have not heard
}

// stillFlapping notes when what comes and goes is worse than it ever was. That alone is not told, unless the incident opens
// to the channels by it.
func (c course) stillFlapping(i store.Incident) []store.Turn {
	var turn store.Turn
	c.worsen(&i, &turn)
	if len(turn.Entries) == 0 {
		return nil
	}
	turn.Incident = i
	return []store.Turn{turn}
}

// unseen returns an incident that came and went as one of which nothing can be told. It goes on as such a one, until something is
// known again.
func (c course) unseen(i store.Incident) store.Turn {
	told, before := c.heard(i), i.Severity
	turn := store.Turn{Tells: store.NoticeUpdated, Told: c.tells(before) || c.tells(c.whole.Status)}
	c.take(&i, &turn, store.EntrySeverity)
	if turn.Notices = c.tellFirst(&i, before); len(turn.Notices) == 0 {
		turn.Notices = c.notices(store.NoticeUpdated, told, c.dueAfterOpening(i))
	}
	turn.Incident = i
	return turn
}

// worsen makes an incident as serious as the endpoint is, where that is worse than it ever was, or than that nothing could be told.
func (c course) worsen(i *store.Incident, turn *store.Turn) {
	if !c.bad() || c.whole.Status == store.StatusUnknown {
		return
	}
	known := i.Severity == store.StatusUnknown && store.Graver(c.whole.Status, i.Severity)
	if !known && !store.Graver(c.whole.Status, i.Worst) {
		return
	}
	before := i.Severity
	c.take(i, turn, store.EntrySeverity)
	turn.Told = c.tells(c.whole.Status)
	if first := c.tellFirst(i, before); len(first) > 0 {
		turn.Notices, turn.Tells = append(turn.Notices, first...), store.NoticeUpdated
	}
}

// calmed returns an incident that no longer comes and goes, because the endpoint stays not well.
func (c course) calmed(i store.Incident) store.Turn {
	i.Flapping = false
	turn := store.Turn{Tells: store.NoticeCalmed, Told: c.tells(c.whole.Status)}
	if i.Severity != c.whole.Status || c.otherCause(i.Cause) {
		kind := store.EntryCause
		if i.Severity != c.whole.Status {
			kind = store.EntrySeverity
		}
		c.take(&i, &turn, kind)
	}
	i.SeenFrom = c.seenFrom()
	turn.Entries = append(turn.Entries, store.Entry{At: c.at, Kind: store.EntryCalmed})
	turn.Notices = c.notices(store.NoticeCalmed, c.heard(i), c.at)
	turn.Incident = i
	return turn
}
