package streamable

import "sync"

// sessionIDs counts the open sessions of a server by their ids. Some servers give all sessions the same id. Then
// the DELETE of one session would end all of them.
type sessionIDs struct {
	mu    sync.Mutex
	count map[string]int
}

// move notes that the id of a session changes. An empty id is no id.
func (u *sessionIDs) move(from, to string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.count == nil {
		u.count = map[string]int{}
	}
	if from != "" {
		if u.count[from]--; u.count[from] == 0 {
			delete(u.count, from)
		}
	}
	if to != "" {
		u.count[to]++
	}
}

// has reports whether an open session has this id.
func (u *sessionIDs) has(id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.count[id] > 0
}
