package scheduler

import "context"

// StartDue begins what is due, as Run does each time it wakes.
func (s *Scheduler) StartDue(ctx context.Context) { s.startDue(ctx) }

// WaitForProbes returns when no probe is under way.
func (s *Scheduler) WaitForProbes() { s.probes.Wait() }

// Hosts returns how many hosts are known.
func (s *Scheduler) Hosts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.hosts)
}
