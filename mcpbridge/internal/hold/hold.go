// Package hold remembers which calls servers do not want for a while: those with credentials to which they have answered 429
// and Retry-After.
package hold

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// most is the longest time for which calls are held, whatever the server says.
	most = 10 * time.Minute
	// maxKeys bounds a book. Calls that it has no room for reach their server, which refuses them itself.
	maxKeys = 1024
)

// Book has the holds of all servers. The key of a hold begins with a place, and names credentials. The zero value is empty. The
// methods may be called from any goroutine.
type Book struct {
	used atomic.Bool // until is not empty

	mu    sync.Mutex
	until map[string]time.Time
	next  time.Time // when the first of them is over
}

// IsEmpty reports whether nothing is held. It may return false when the last hold is over. It is cheap.
func (b *Book) IsEmpty() bool { return !b.used.Load() }

// Note notes that the server wants no calls for some time from now on. A longer hold on the key stays.
func (b *Book) Note(key string, now time.Time, wanted time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(now)
	until := now.Add(min(wanted, most))
	if before, held := b.until[key]; !until.After(now) || !until.After(before) || !held && len(b.until) == maxKeys {
		return
	}
	if len(b.until) == 0 {
		b.until, b.next = map[string]time.Time{}, until
		b.used.Store(true)
	}
	b.until[key] = until
	if until.Before(b.next) {
		b.next = until
	}
}

// Until returns when the hold on a key is over, or the zero time if there is none.
func (b *Book) Until(key string, now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(now)
	return b.until[key]
}

// Forget drops the holds at a place.
func (b *Book) Forget(place string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.until, func(key string, _ time.Time) bool { return strings.HasPrefix(key, place) })
	b.used.Store(len(b.until) > 0)
}

// drop drops the holds that are over.
func (b *Book) drop(now time.Time) {
	if len(b.until) == 0 || now.Before(b.next) {
		return
	}
	maps.DeleteFunc(b.until, func(_ string, until time.Time) bool { return !now.Before(until) })
	b.next = now.Add(most)
	for _, until := range b.until {
		if until.Before(b.next) {
			b.next = until
		}
	}
	b.used.Store(len(b.until) > 0)
}
