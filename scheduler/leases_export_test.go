package scheduler

import "time"

// Sure lists the shards that are owned by what the database said, not merely because the database is away.
func (l *Leases) Sure() (shards []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !time.Now().Before(l.sure) {
		return nil
	}
	for shard, h := range l.held {
		if !h.unsure {
			shards = append(shards, shard)
		}
	}
	return shards
}
