package scheduler

import "time"

// Sure reports whether a shard is owned by what the database said, not merely because the database is away.
func (l *Leases) Sure(shard int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.held[shard]
	return ok && !h.unsure && time.Now().Before(l.sure)
}
