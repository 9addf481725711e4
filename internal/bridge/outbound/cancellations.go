package outbound

import (
	"context"
	"sync"
)

// maxCancellations bounds the notifications of cancelled calls that one connection sends at a time:
// those to a server that hangs would hold a connection each.
const maxCancellations = 16

// Cancellations gives turns to the notifications of cancelled calls.
type Cancellations struct {
	used  sync.Once
	turns chan struct{} // made with the first notification: most sessions send none
}

// NewCancellations returns the turns of one connection.
func NewCancellations() Cancellations { return Cancellations{} }

// Wait waits for a turn, which ends with release.
func (c *Cancellations) Wait(ctx context.Context) (release func(), err error) {
	c.used.Do(func() { c.turns = make(chan struct{}, maxCancellations) })
	select {
	case c.turns <- struct{}{}:
		return func() { <-c.turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
