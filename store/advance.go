package store

import (
	"slices"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Advance is what a check does to everything kept about its endpoint except the check itself, worked out without a
// database so that every database does the same. open is the endpoint's open incident, nil when there is none.
func Advance(e Endpoint, prev State, open *Incident, c Check, judge Judge) Advanced {
	next := prev
	if !e.Paused {
		next = judge(e, prev, c)
	}
	a := Advanced{State: next.observe(c)}
	switch down := next.Status == StatusDown; {
	case down && open == nil:
		a.Open = openIncident(e, next, c)
		a.Notices = noticesFor(e, a.Open.ID, NoticeOpened, c.ended())
	case !down && open != nil && recovered(next.Status):
		a.Resolve = Resolve(*open, c.ended(), next.Since, ResolutionRecovered)
		a.Notices = noticesFor(e, open.ID, NoticeResolved, c.ended())
	}
	return a
}

// Advanced is what Advance works out, to be written in one transaction with the check.
type Advanced struct {
	State   State
	Open    *Incident // to be inserted
	Resolve *Incident // to be updated
	Notices []Notice  // to be inserted
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
	i.ResolvedAt, i.Resolution = &end, how
	return &i
}

func noticesFor(e Endpoint, incidentID string, kind NoticeKind, at time.Time) []Notice {
	notices := make([]Notice, 0, len(e.Channels))
	for _, channel := range slices.Compact(slices.Sorted(slices.Values(e.Channels))) {
		notices = append(notices, Notice{
			ID:         NewID("ntc"),
			IncidentID: incidentID,
			ChannelID:  channel,
			Kind:       kind,
			CreatedAt:  at,
			DueAt:      at,
		})
	}
	return notices
}

// PauseNotices is what pausing an endpoint with an open incident leaves to be told.
func PauseNotices(e Endpoint, incidentID string, at time.Time) []Notice {
	return noticesFor(e, incidentID, NoticeResolved, at)
}
