package probe

import "sync"

// maxMemo bounds how many things of a kind are kept made.
const maxMemo = 256

// memo keeps what is dear to make from a text that somebody configured: a compiled expression is used again by every
// check of its endpoint. It is safe for concurrent use; the zero memo is empty.
type memo[T any] struct {
	mu   sync.Mutex
	made map[string]T // guarded by mu
}

// get returns what was made from key, or makes it. What could not be made is not kept.
func (m *memo[T]) get(key string, build func(string) (T, error)) (T, error) {
	m.mu.Lock()
	made, ok := m.made[key]
	m.mu.Unlock()
	if ok {
		return made, nil
	}
	made, err := build(key)
	if err != nil {
		return made, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made == nil || len(m.made) >= maxMemo {
		m.made = map[string]T{}
	}
	m.made[key] = made
	return made, nil
}
