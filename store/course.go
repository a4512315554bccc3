package store

import (
	"cmp"
	"slices"
	"time"
)

// Situation is what the rule for incidents looks at: an endpoint after a check.
type Situation struct {
	// Standing is the endpoint with what its places add up to after the check, and its open incidents as they were before it.
	Standing *Standing
	Before   State // what the places added up to before
	Check    Check
	At       time.Time // by the clock of whoever writes
}

// Turn is what becomes of one incident by a check, worked out by Judge.Course.
type Turn struct {
	// EndpointID is whose check it was, and At when that was over; both are filled in by the store.
	EndpointID string
	At         time.Time
	// Incident is how it is from here on. One that is not there yet has ID, Kind, Subject, StartedAt and OpenedAt filled in.
	Incident Incident
	// Opens means that it is to be inserted. Where one of its subject is open already, which only happens to a shared one, the
	// endpoint joins that one, and channels hear of it that have not yet; EntryOpened is kept only where it opens.
	Opens bool
	// Leaves means that the endpoint is no longer in a shared incident. With the last that leaves, it is over, at
	// *Incident.ResolvedAt; Notices, and EntryResolved, are kept only then.
	Leaves bool
	// Reopens means that it was resolved by somebody, and is open again. Of Incident, what the rule owns is filled in.
	Reopens bool
	Entries []Entry  // in order; IDs are filled in by the store
	Notices []Notice // of the endpoint's channels; likewise, ChannelID, Kind and DueAt are filled in
	// Tells is what those who have subscribed hear, NoticeOpened when they have not heard of the incident before; empty: nothing.
	// Told means that the severity is one that the endpoint tells: those who named no severities go by that.
	Tells    NoticeKind
	Told     bool
	Withdraw bool // notices that remind or escalate and are not sent yet are taken back
}

// course returns what becomes of the incidents of a situation, with every id filled in. Under maintenance nothing opens and
// nothing is told but the end of what was told before.
func (j Judge) course(s Situation) []Turn {
	rule := j.Course
	if rule == nil {
		rule = plainCourse
	}
	turns := rule(s)
	if j.Maintained != nil && j.Maintained(s.Standing.Endpoint.ID, s.Check.Result.StartedAt) {
		turns = slices.DeleteFunc(turns, func(t Turn) bool { return t.Opens || t.Reopens })
		for i := range turns {
			turns[i].silence(s.before(turns[i].Incident))
		}
		turns = slices.DeleteFunc(turns, func(t Turn) bool { return len(t.Entries)+len(t.Notices) == 0 && t.Tells == "" })
	}
	for i := range turns {
		turns[i].EndpointID, turns[i].At = s.Standing.Endpoint.ID, s.Check.ended()
		turns[i].enroll()
	}
	return turns
}

// Joined returns a turn that opens a shared incident as what it is where one of its subject is open already: the endpoint, whose
// name is given, joins that one. Channels that were told of it, as shared.Told says, do not hear of its opening again.
func (t Turn) Joined(shared Incident, name string) Turn {
	t = t.of(shared)
	t.Opens = false
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Kind == EntryOpened {
			e.Kind, e.Severity, e.Cause = EntryJoined, "", nil
			e.Text = cmp.Or(e.Text, CleanText(name))
		}
	}
	t.Notices = slices.DeleteFunc(t.Notices, func(n Notice) bool {
		return n.Kind == NoticeOpened && slices.Contains(shared.Told, n.ChannelID)
	})
	return t
}

// Left returns a turn with which an endpoint, whose name is given, leaves a shared incident: with the last it ends, else nothing
// is told.
func (t Turn) Left(shared Incident, name string, last bool) Turn {
	ended, how := t.Incident.ResolvedAt, t.Incident.Resolution
	t = t.of(shared)
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Kind == EntryResolved && !last {
			e.Kind = EntryLeft
		}
		if e := &t.Entries[i]; e.Kind == EntryLeft {
			e.Text = cmp.Or(e.Text, CleanText(name))
		}
	}
	if !last {
		t.Notices, t.Tells, t.Withdraw = nil, "", false
		return t
	}
	if ended == nil {
		ended, how = &t.At, ResolutionRecovered
	}
	t.Incident = *Resolve(shared, *ended, *ended, how)
	if !slices.ContainsFunc(t.Entries, func(e Entry) bool { return e.Kind == EntryResolved }) {
		t.Entries = append(t.Entries, Entry{ID: NewID("ent"), IncidentID: shared.ID, At: Stamp(t.At), Kind: EntryResolved})
	}
	return t
}

// Of returns t as a change of a shared incident that is open: what the rule says of it holds, whoever opened it.
func (t Turn) Of(shared Incident) Turn {
	i := t.Incident
	t = t.of(shared)
	t.Incident.Title, t.Incident.Severity, t.Incident.Worst, t.Incident.Cause = i.Title, i.Severity, i.Worst, i.Cause
	t.Incident.SeenFrom, t.Incident.Flapping, t.Incident.ResolvedAt, t.Incident.Resolution = i.SeenFrom, i.Flapping, i.ResolvedAt, i.Resolution
	return t
}

// of returns a copy of t that is about another incident of the same subject.
func (t Turn) of(shared Incident) Turn {
	t.Incident, t.Entries, t.Notices = shared, slices.Clone(t.Entries), slices.Clone(t.Notices)
	for i := range t.Entries {
		t.Entries[i].IncidentID = shared.ID
	}
	for i := range t.Notices {
		t.Notices[i].IncidentID = shared.ID
	}
	return t
}

// before returns an incident as it was before the check, nil when it is not open yet.
func (s Situation) before(i Incident) *Incident {
	if open := s.Standing.Open; open != nil && open.ID == i.ID {
		return open
	}
	at := slices.IndexFunc(s.Standing.Others, func(o Incident) bool { return o.ID == i.ID })
	if at < 0 {
		return nil
	}
	return &s.Standing.Others[at]
}

// silence takes away what is told under maintenance: all but the end of what was told before. Who would have heard of the
// opening has not, and what would have been told as another severity or cause has not become that: both are told when the
// maintenance is over, if they are so still.
func (t *Turn) silence(before *Incident) {
	for _, n := range t.Notices {
		if n.Kind == NoticeOpened {
			t.Incident.Told = slices.DeleteFunc(slices.Clone(t.Incident.Told), func(id string) bool { return id == n.ChannelID })
		}
	}
	t.Notices = slices.DeleteFunc(t.Notices, func(n Notice) bool { return n.Kind != NoticeResolved })
	if t.Tells != NoticeResolved {
		t.Tells = ""
	}
	if before == nil || t.Incident.ResolvedAt != nil || t.Leaves {
		return
	}
	t.Incident.Severity, t.Incident.Worst, t.Incident.Cause = before.Severity, before.Worst, before.Cause
	t.Entries = slices.DeleteFunc(t.Entries, func(e Entry) bool { return e.Kind == EntrySeverity || e.Kind == EntryCause })
}

// enroll fills in what follows from the incident. The notices of a turn tell of its last entry.
func (t *Turn) enroll() {
	for i := range t.Entries {
		t.Entries[i].ID, t.Entries[i].IncidentID = NewID("ent"), t.Incident.ID
		t.Entries[i].At, t.Entries[i].Text = Stamp(t.Entries[i].At), CleanText(t.Entries[i].Text)
	}
	for i := range t.Notices {
		n := &t.Notices[i]
		n.ID, n.IncidentID = NewID("ntc"), t.Incident.ID
		if len(t.Entries) > 0 && n.EntryID == "" && !n.Kind.Ahead() {
			n.EntryID = t.Entries[len(t.Entries)-1].ID
		}
	}
}

// plainCourse opens an incident when an endpoint is down and ends it when it has recovered. Pending has proved nothing yet, and
// unknown cannot tell.
func plainCourse(s Situation) []Turn {
	e, whole, at := s.Standing.Endpoint, s.Standing.State, s.Check.ended()
	switch open := s.Standing.Open; {
	case whole.Status == StatusDown && open == nil:
		i := OpenIncident(s)
		return []Turn{{
			Incident: i, Opens: true,
			Entries: []Entry{{At: at, Kind: EntryOpened, Severity: i.Severity, Cause: whole.Failure}},
			Notices: NoticesOf(i, NoticeOpened, e.Channels, at), Tells: NoticeOpened, Told: true,
		}}
	case open != nil && (whole.Status == StatusUp || whole.Status == StatusDegraded || whole.Status == StatusGated):
		i := *Resolve(*open, at, whole.Since, ResolutionRecovered)
		return []Turn{{
			Incident: i,
			Entries:  []Entry{{At: at, Kind: EntryResolved}},
			Notices:  NoticesOf(i, NoticeResolved, e.Channels, at), Tells: NoticeResolved, Told: true,
		}}
	}
	return nil
}

// OpenIncident returns an incident about an endpoint that is not up, as it begins.
func OpenIncident(s Situation) Incident {
	e, whole := s.Standing.Endpoint, s.Standing.State
	i := Incident{
		ID: NewID("inc"), Kind: IncidentEndpoint, Subject: SubjectOf(e.ID), EndpointID: e.ID,
		Severity: whole.Status, Worst: whole.Status,
		StartedAt: whole.Since, OpenedAt: s.Check.ended(), CheckID: s.Check.ID, Told: slices.Clone(e.Channels),
	}
	if whole.Failure != nil {
		i.Cause = *whole.Failure
	}
	for _, p := range s.Standing.Places {
		if p.State.Status == whole.Status {
			i.SeenFrom = append(i.SeenFrom, p.Location)
		}
	}
	return i
}

// NoticesOf returns one notice for each channel that was told of an incident, also one that its endpoint no longer names: who
// heard that it began should hear the rest. Others are channels that hear of it as well.
func NoticesOf(i Incident, kind NoticeKind, others []string, at time.Time) []Notice {
	channels := slices.Compact(slices.Sorted(slices.Values(slices.Concat(i.Told, others))))
	notices := make([]Notice, 0, len(channels))
	for _, channel := range channels {
		notices = append(notices, Notice{ID: NewID("ntc"), IncidentID: i.ID, ChannelID: channel, Kind: kind, CreatedAt: at, DueAt: at})
	}
	return notices
}

// Ended returns when a check was over.
func (c Check) Ended() time.Time { return c.ended() }

// flipped returns s with the change between well and not well that it makes, if any. What proves nothing changes nothing.
func (s State) flipped(before State, at time.Time) State {
	const kept = time.Hour
	if well(before.Status) != well(s.Status) && proves(before.Status) && proves(s.Status) {
		s.Flips = append(slices.Clone(s.Flips), Stamp(at))
	}
	if len(s.Flips) > 0 && (len(s.Flips) > maxFlips || at.Sub(s.Flips[0]) > kept) {
		s.Flips = slices.DeleteFunc(slices.Clone(s.Flips), func(t time.Time) bool { return at.Sub(t) > kept })
		s.Flips = s.Flips[max(0, len(s.Flips)-maxFlips):]
	}
	// That it cannot be told for a while is nothing worse: only Course knows when it has been for too long.
	if s.Hushed != nil && (s.Status == StatusUp || s.Status != StatusUnknown && Graver(s.Status, s.Hushed.Severity)) {
		s.Hushed = nil
	}
	return s
}

func well(s Status) bool { return s == StatusUp }

func proves(s Status) bool { return s != StatusPending && s != StatusUnknown && s != "" }
