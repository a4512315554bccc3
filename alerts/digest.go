package alerts

import (
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// A storm is when a channel would hear of more than stormOver incidents within stormWithin. Then the rest is told as one digest,
// and at most one in that time: nobody reads fifty messages a minute.
const (
	stormOver   = 20
	stormWithin = time.Minute
	// gather is how long a digest waits for more: those who fail together are not all seen within one second.
	gather = 5 * time.Second
	// maxUpdates is how many messages are changed one by one although there is a storm of resolutions. A message that says
	// that something is down should not stay like that; more of them would take longer than the news is worth.
	maxUpdates = 60
)

// digests reports whether many incidents may be one message in a channel of a type. To PagerDuty and Opsgenie an incident is a
// thing with a key of its own, which is opened, paged for and closed; they bundle by themselves, as their owners have set them up.
func digests(t store.ChannelType) bool {
	return t != store.ChannelPagerDuty && t != store.ChannelOpsgenie
}

// gist is what a delivery is to somebody who hears of many.
type gist int

const (
	other gist = iota // not a matter for a digest
	opening
	ending // of an incident whose opening was told
	gists
)

func gistOf(d store.Delivery) gist {
	switch {
	case d.Event != nil:
		return other
	case d.Notice.Kind == store.NoticeOpened: // also when it is over already
		return opening
	case newest(d).Kind == store.NoticeResolved:
		return ending
	default:
		return other
	}
}

// storm is what a channel has heard of late.
type storm struct {
	told     [gists][]moment
	digestAt time.Time // when the last digest was sent
}

// moment is when n incidents were told.
type moment struct {
	at time.Time
	n  int
}

// tell notes that deliveries were told just now.
func (s *storm) tell(items []leased, now time.Time) {
	var n [gists]int
	for _, l := range items {
		n[gistOf(l.Delivery)]++
	}
	for g := opening; g < gists; g++ {
		if n[g] > 0 {
			s.told[g] = append(s.told[g], moment{now, n[g]})
		}
	}
	if len(items) > 1 {
		s.digestAt = now
	}
}

// lately returns how many were told within stormWithin, and forgets what was told before.
func (s *storm) lately(g gist, now time.Time) int {
	told, n := s.told[g], 0
	for len(told) > 0 && now.Sub(told[0].at) >= stormWithin {
		told = told[1:]
	}
	for _, m := range told {
		n += m.n
	}
	s.told[g] = told
	return n
}

// over reports whether nothing of the storm is to be remembered.
func (s *storm) over(now time.Time) bool {
	return s.lately(opening, now)+s.lately(ending, now) == 0 && now.Sub(s.digestAt) >= stormWithin
}

// folded reports for each gist whether what waits of it goes into a digest, edits being those that change a message.
func (s *storm) folded(waiting []leased, now time.Time) (folds [gists]bool, edits bool) {
	var n [gists]int
	changes := 0
	for _, l := range waiting {
		g := gistOf(l.Delivery)
		n[g]++
		if g == ending && l.Ref != "" {
			changes++
		}
	}
	for g := opening; g < gists; g++ {
		folds[g] = n[g] > 0 && digests(waiting[0].Channel.Type) && n[g]+s.lately(g, now) > stormOver
	}
	return folds, changes > maxUpdates
}

// split divides what waits into what goes into a digest and what is told by itself, both in order.
func (s *storm) split(waiting []leased, now time.Time) (digest, single []leased) {
	folds, edits := s.folded(waiting, now)
	for _, l := range waiting {
		if g := gistOf(l.Delivery); folds[g] && (g != ending || l.Ref == "" || edits) {
			digest = append(digest, l)
		} else {
			single = append(single, l)
		}
	}
	return digest, single
}

// due returns when a digest may be sent.
func (s *storm) due(digest []leased) time.Time {
	due := digest[0].since.Add(gather)
	if next := s.digestAt.Add(stormWithin); next.After(due) {
		return next
	}
	return due
}
