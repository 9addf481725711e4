package wire

import (
	"context"
	"time"
)

const (
	// FreshLimit is how long a server may refuse a session that it has just opened as unknown.
	FreshLimit = 2 * time.Second
	// FreshInterval is the time before the first repetition of the request.
	FreshInterval = 50 * time.Millisecond
)

// WhileFresh yields at growing intervals until FreshLimit is over or ctx ends.
func WhileFresh(ctx context.Context) func(yield func() bool) {
	return func(yield func() bool) {
		limit := time.Now().Add(FreshLimit)
		for wait := FreshInterval; time.Now().Add(wait).Before(limit) && Sleep(ctx, wait); wait = min(2*wait, FreshLimit/5) {
			if !yield() {
				return
			}
		}
	}
}

// Sleep waits for d. It returns false if ctx ended before.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
