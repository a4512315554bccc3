package scheduler

import (
	"net/url"
	"strings"

	"github.com/rollcallhq/rollcall/store"
)

// DefaultPerHost is how many probes of one host may be under way at once unless Config.PerHost says otherwise: enough that
// one that hangs does not hold up its neighbours, and few enough to be no burden to anybody's server.
const DefaultPerHost = 4

// host is what endpoints of one machine, or of one command, have in common: its slots. Its members are guarded by
// Scheduler.mu.
type host struct {
	key     string
	entries int   // that live on it
	running int   // probes under way, those of entries that have moved away included
	waiting queue // turns that are due and found the host full
}

// hostKey names what an endpoint shares slots with: the host of its URL, lower case and without a port, the path of its
// unix socket, or the program of its command.
func hostKey(e *store.Endpoint) string {
	if e.Command != nil && len(e.Command.Args) > 0 {
		return "command " + e.Command.Args[0]
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return "" // refused when it was registered; the probe says so again
	}
	if u.Scheme == "unix" {
		return "unix " + u.Path
	}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}

// settleLocked has an entry live on the host of its endpoint. A turn of the entry must not be in a queue.
func (s *Scheduler) settleLocked(en *entry) {
	key := hostKey(en.endpoint)
	if en.host != nil && en.host.key == key {
		return
	}
	h := s.hosts[key]
	if h == nil {
		h = &host{key: key}
		s.hosts[key] = h
	}
	h.entries++
	if old := en.host; old != nil {
		old.entries--
		s.promoteLocked(old) // the entry may have been about to take its free slot
		s.forgetHostLocked(old)
	}
	en.host = h
}

// forgetHostLocked drops a host that nothing is known of any more.
func (s *Scheduler) forgetHostLocked(h *host) {
	if h.entries == 0 && h.running == 0 && len(h.waiting) == 0 {
		delete(s.hosts, h.key)
	}
}

// hasRoom reports whether one more probe of a host may begin.
func (s *Scheduler) hasRoom(h *host) bool { return s.perHost < 0 || h.running < s.perHost }

// waitLocked has a turn wait for a slot of a host that is full.
func (s *Scheduler) waitLocked(t *turn, h *host) {
	t.full = h
	h.waiting.add(t)
	s.hostWaiting++
}

// promoteLocked has the oldest of those who wait for a host go on when the host has room. It takes the slot when it
// begins: until then it stands in the queue with everybody else.
func (s *Scheduler) promoteLocked(h *host) {
	if len(h.waiting) == 0 || !s.hasRoom(h) {
		return
	}
	t := h.waiting[0]
	h.waiting.remove(t)
	t.full = nil
	s.hostWaiting--
	s.queueLocked(t)
}

// takeLocked takes a slot of a host and one of all.
func (s *Scheduler) takeLocked(h *host) {
	s.running++
	h.running++
}

// freeLocked gives back what takeLocked took and has the next go on.
func (s *Scheduler) freeLocked(h *host) {
	s.running--
	h.running--
	s.promoteLocked(h)
	s.forgetHostLocked(h)
	if s.full {
		s.full = false
		s.nudge()
	}
}
