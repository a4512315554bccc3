package scheduler

import "context"

// StartDue begins what is due, as Run does each time it wakes.
func (s *Scheduler) StartDue(ctx context.Context) { s.startDue(ctx) }

// WaitForProbes returns when no probe is under way.
func (s *Scheduler) WaitForProbes() { s.probes.Wait() }
