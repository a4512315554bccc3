package store

import (
	"bytes"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Advance is what a check does to everything kept about its endpoint except the check itself, worked out without a
// database so that every database does the same. open is the endpoint's open incident, nil when there is none.
func Advance(e Endpoint, prev State, open *Incident, c Check, judge Judge) Advanced {
	if e.Paused {
		return Advanced{State: prev.observe(c)} // nothing changes, also not a status from before the pause
	}
	late := c.Result.StartedAt.Before(prev.LastCheckAt)
	next := judge(e, prev, c)
	a := Advanced{State: next.observe(c)}
	a.State, a.Transcript = a.State.observeTranscript(c)
	if !late {
		a.State, a.Contract = a.State.observeContract(e, c)
	}
	switch down := next.Status == StatusDown; {
	case down && open == nil:
		a.Open = openIncident(e, next, c)
		a.Notices = noticesOf(*a.Open, NoticeOpened, nil, c.ended())
	case !down && open != nil && recovered(next.Status):
		a.Resolve = Resolve(*open, c.ended(), next.Since, ResolutionRecovered)
		a.Notices = noticesOf(*open, NoticeResolved, e.Channels, c.ended())
	}
	if e.ContractNotices && a.Contract != nil && a.Contract.Event != nil {
		told, ok := a.State.ContractTold.again(c.ended())
		if ok {
			a.Notices = append(a.Notices, eventNotices(*a.Contract.Event, e.Channels, c.ended())...)
		}
		a.State.ContractTold = told
	}
	return a
}

// Advanced is what Advance works out, to be written in one transaction with the check.
type Advanced struct {
	State   State
	Open    *Incident // to be inserted
	Resolve *Incident // to be updated
	Notices []Notice  // to be inserted

	Contract   *NewContract    // to be inserted, with its event
	Transcript *KeptTranscript // to be inserted
}

// recovered reports whether a status ends an open incident. Pending does not: an endpoint that was edited in the
// middle of an outage has proved nothing yet. Nor does unknown: we could not tell.
func recovered(s Status) bool {
	return s == StatusUp || s == StatusDegraded || s == StatusGated
}

// observe notes what follows from the check alone.
func (s State) observe(c Check) State {
	if c.Result.StartedAt.Before(s.LastCheckAt) {
		return s
	}
	s.LastCheckID, s.LastCheckAt = c.ID, c.Result.StartedAt
	if c.Result.Kind != "" && c.Result.Kind != probe.KindAuto {
		s.Kind = c.Result.Kind
	}
	if c.Result.Era != "" {
		s.Era = c.Result.Era
	}
	s.Memory = c.Result.Memory
	if h := c.Result.Facts.Height; h != nil && (s.Height == nil || *h > *s.Height) {
		s.Height, s.HeightSince = h, c.Result.StartedAt
	}
	return s
}

func (c Check) ended() time.Time { return c.Result.StartedAt.Add(c.Result.Duration) }

func openIncident(e Endpoint, s State, c Check) *Incident {
	i := &Incident{
		ID:         NewID("inc"),
		EndpointID: e.ID,
		Severity:   s.Status,
		StartedAt:  s.Since,
		OpenedAt:   c.ended(),
		Told:       e.Channels,
	}
	if s.Failure != nil {
		i.Cause = *s.Failure
	}
	return i
}

// Resolve returns i as it ends at, though not before it began.
func Resolve(i Incident, at, recoveredAt time.Time, how Resolution) *Incident {
	end := recoveredAt
	if end.IsZero() || end.Before(i.StartedAt) {
		end = at
	}
	if end.Before(i.StartedAt) {
		end = i.StartedAt // a clock that was set back
	}
	i.ResolvedAt, i.Resolution = &end, how
	return &i
}

// noticesOf returns one notice for each channel that was told of the opening, also one that the endpoint no longer names:
// who heard that it began should hear that it ended. Others are channels that hear of it as well.
func noticesOf(i Incident, kind NoticeKind, others []string, at time.Time) []Notice {
	channels := slices.Compact(slices.Sorted(slices.Values(slices.Concat(i.Told, others))))
	notices := make([]Notice, 0, len(channels))
	for _, channel := range channels {
		notices = append(notices, Notice{
			ID:         NewID("ntc"),
			IncidentID: i.ID,
			ChannelID:  channel,
			Kind:       kind,
			CreatedAt:  at,
			DueAt:      at,
		})
	}
	return notices
}

// eventNotices returns one notice of an event for each of the channels.
func eventNotices(ev Event, channels []string, at time.Time) []Notice {
	notices := make([]Notice, 0, len(channels))
	for _, channel := range slices.Compact(slices.Sorted(slices.Values(channels))) {
		notices = append(notices, Notice{
			ID:        NewID("ntc"),
			EventID:   ev.ID,
			ChannelID: channel,
			Kind:      NoticeContract,
			CreatedAt: at,
			DueAt:     at,
		})
	}
	return notices
}

// Amend is what editing an endpoint does to everything kept about it except the endpoint itself, worked out without a
// database. open is the endpoint's open incident, nil when there is none.
func Amend(before, after Endpoint, s State, open *Incident, at time.Time) Amended {
	a := Amended{State: s}
	if after.Paused && !before.Paused && open != nil {
		a.Resolve = Resolve(*open, at, time.Time{}, ResolutionPaused)
		a.Notices = noticesOf(*open, NoticeResolved, after.Channels, at)
	}
	retargeted := !before.asks(after)
	if retargeted {
		// What was found out about the earlier target says nothing about this one.
		a.State.Kind, a.State.Era, a.State.Height, a.State.HeightSince = "", "", nil, time.Time{}
		a.State.Memory, a.State.Contracts, a.State.Suspect = probe.Memory{}, nil, nil
	}
	if retargeted || before.Paused && !after.Paused {
		a.State = a.State.restart(at)
	}
	return a
}

// Amended is what Amend works out, to be written in one transaction with the endpoint.
type Amended struct {
	State   State
	Resolve *Incident // to be updated
	Notices []Notice  // to be inserted
}

// restart returns s as if nothing had been proved yet.
func (s State) restart(at time.Time) State {
	s.Status, s.Since, s.Failure = StatusPending, at, nil
	s.Streak, s.Down = Streak{}, Streak{}
	return s
}

func (r Request) equal(o Request) bool {
	return r.Method == o.Method && bytes.Equal(r.Params, o.Params)
}
