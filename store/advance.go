package store

import (
	"bytes"
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Advance is what a check does to everything kept about its endpoint except the check itself, worked out without a
// database so that every database does the same. It changes s: the place of the check, and what the places add up to. now
// is the time by the clock of whoever writes.
func Advance(s *Standing, c Check, judge Judge, now time.Time) Advanced {
	e, place := s.Endpoint, s.place(c.Location)
	prev := place.State.believed(now)
	if e.Paused {
		place.State = prev.observe(c) // nothing changes, also not a status from before the pause
		return Advanced{}
	}
	late := c.Result.StartedAt.Before(prev.LastCheckAt)
	var a Advanced
	next := judge.Check(e, prev, c).observe(c)
	next, a.Transcript = next.observeTranscript(c)
	if !late && s.leads(c.Location, c.Result.StartedAt) {
		next.Contracts = s.contracts(next.Contracts)
		next, a.Contract = next.observeContract(e, c)
	}
	place.State = next
	before := s.State
	if !late {
		s.State = judge.whole(s, votedAt(c, now)).flipped(before, c.ended())
		a.Turns = judge.course(Situation{Standing: s, Before: before, Check: c, At: now})
	}
	if e.ContractNotices && a.Contract != nil && a.Contract.Event != nil {
		told, ok := place.State.ContractTold.again(c.ended())
		if ok {
			a.Notices = append(a.Notices, eventNotices(*a.Contract.Event, e.Channels, c.ended())...)
		}
		place.State.ContractTold = told
	}
	return a
}

// Advanced is what Advance works out, to be written in one transaction with the check and the standing.
type Advanced struct {
	Turns   []Turn   // what becomes of incidents, with their entries and notices
	Notices []Notice // of events, to be inserted

	Contract   *NewContract    // to be inserted, with its event
	Transcript *KeptTranscript // to be inserted
}

// votedAt returns the time at which the places are asked what they add up to after a check: its own, but not one that lies back
// because the check waited out an outage of the database. Other places' checks may still wait, and who comes first is not alone.
func votedAt(c Check, now time.Time) time.Time {
	if at := c.ended(); now.Sub(at) <= clockSlack {
		return at
	}
	return now
}

// clockSlack is how far the clocks of two machines that watch one endpoint may differ.
const clockSlack = time.Minute

// believed returns s without a time that lies ahead: the clock was wrong then, and every check until that time would pass
// for a late one.
func (s State) believed(now time.Time) State {
	for _, at := range []*time.Time{&s.LastCheckAt, &s.TranscriptAt, &s.ContractTold.Since} {
		if at.After(now.Add(clockSlack)) {
			*at = time.Time{}
		}
	}
	return s
}

// observe notes what follows from the check alone.
func (s State) observe(c Check) State {
	if c.Result.StartedAt.Before(s.LastCheckAt) {
		return s
	}
	s.LastCheckID, s.LastCheckAt = c.ID, c.Result.StartedAt
	s.LastVerdict, s.LastDuration = c.Result.Verdict, c.Result.Duration
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
// database. It changes s, whose Endpoint is the one before: its places and what they add up to.
func Amend(s *Standing, after Endpoint, at time.Time) Amended {
	var a Amended
	before := s.Endpoint
	if after.Paused && !before.Paused {
		a.Turns = s.paused(after, Stamp(at))
	}
	retargeted := !before.asks(after)
	restarted := retargeted || before.Paused && !after.Paused
	for i := range s.Places {
		state := &s.Places[i].State
		if retargeted {
			// What was found out about the earlier target says nothing about this one.
			state.Kind, state.Era, state.Height, state.HeightSince = "", "", nil, time.Time{}
			state.Memory, state.Contracts, state.Suspect = probe.Memory{}, nil, nil
		}
		if restarted {
			*state = state.restart(at)
		}
	}
	if restarted {
		s.State = s.State.restart(at)
	}
	s.Endpoint = after
	return a
}

// Amended is what Amend works out, to be written in one transaction with the endpoint and the standing.
type Amended struct {
	Turns []Turn // what becomes of incidents, with their entries and notices
}

// paused returns what becomes of the incidents of an endpoint that is no longer judged. Objectives are judged elsewhere.
func (s *Standing) paused(after Endpoint, at time.Time) []Turn {
	var ended []Incident
	if s.Open != nil {
		ended = append(ended, *s.Open)
	}
	for _, i := range s.Others {
		if i.Kind == IncidentExpiring {
			ended = append(ended, i)
		}
	}
	turns := s.end(ended, ResolutionPaused, "the endpoint was paused", after.Channels, at)
	return append(turns, s.depart(ResolutionPaused, at)...)
}

// Remove returns what becomes of the incidents of an endpoint that somebody removes: they end, and whoever heard of them hears it.
func Remove(s *Standing, at time.Time) []Turn {
	at = Stamp(at)
	var ended []Incident
	if s.Open != nil {
		ended = append(ended, *s.Open)
	}
	for _, i := range s.Others {
		if !i.Kind.Shared() {
			ended = append(ended, i)
		}
	}
	turns := s.end(ended, ResolutionRemoved, "the endpoint was removed", nil, at)
	return append(turns, s.depart(ResolutionRemoved, at)...)
}

// end returns how incidents of an endpoint end because nobody watches it any more. Channels beside those that were told hear it too.
func (s *Standing) end(incidents []Incident, how Resolution, why string, channels []string, at time.Time) []Turn {
	var turns []Turn
	for _, i := range incidents {
		i = *Resolve(i, at, time.Time{}, how)
		t := Turn{
			EndpointID: s.Endpoint.ID, At: at, Incident: i,
			Entries: []Entry{{At: at, Kind: EntryResolved, Text: why}},
			Notices: NoticesOf(i, NoticeResolved, channels, at), Tells: NoticeResolved, Told: true, Withdraw: true,
		}
		t.enroll()
		turns = append(turns, t)
	}
	return turns
}

// depart returns how an endpoint leaves the shared incidents that it is in, because nobody asks it any more.
func (s *Standing) depart(how Resolution, at time.Time) []Turn {
	var turns []Turn
	for _, i := range s.Others {
		if !i.Kind.Shared() {
			continue
		}
		i = *Resolve(i, at, time.Time{}, how)
		t := Turn{
			EndpointID: s.Endpoint.ID, At: at, Incident: i, Leaves: true,
			Entries: []Entry{{At: at, Kind: EntryLeft}},
			Notices: NoticesOf(i, NoticeResolved, nil, at), Tells: NoticeResolved, Told: true, Withdraw: true,
		}
		t.enroll()
		turns = append(turns, t)
	}
	return turns
}

// restart returns s as if nothing had been proved yet.
func (s State) restart(at time.Time) State {
	s.Status, s.Since, s.Failure = StatusPending, at, nil
	s.Streak, s.Down = Streak{}, Streak{}
	s.Flips, s.Hushed = nil, nil
	return s
}

func (r Request) equal(o Request) bool {
	return r.Method == o.Method && bytes.Equal(r.Params, o.Params)
}
