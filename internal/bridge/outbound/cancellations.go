package outbound

import "context"

// maxCancellations bounds the notifications of cancelled calls that one connection sends at a time:
// those to a server that hangs would hold a connection each.
const maxCancellations = 16

// Cancellations gives turns to the notifications of cancelled calls.
type Cancellations chan struct{}

// NewCancellations returns the turns of one connection.
func NewCancellations() Cancellations { return make(Cancellations, maxCancellations) }

// Wait waits for a turn, which ends with release.
func (c Cancellations) Wait(ctx context.Context) (release func(), err error) {
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
