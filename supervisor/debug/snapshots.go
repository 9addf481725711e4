package debug

import (
	"context"
	"errors"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

const (
	// snapshotAge is how long a snapshot is shown, and how often pages are updated.
	snapshotAge = time.Second
	// inspectTimeout bounds the taking of a snapshot. The registry never blocks, so that it is
	// reached only by a machine that is overloaded. Members of a cluster have less time.
	inspectTimeout = 5 * time.Second
)

// snapshots takes snapshots of all sessions when they are asked for, at most one per
// snapshotAge for all who ask.
type snapshots struct {
	closed context.Context
	source Source
	turn   chan struct{} // has a value while one goroutine uses the fields below
	last   *messages.Snapshot
	err    error
	at     time.Time // when last or err came
}

func newSnapshots(closed context.Context, source Source) *snapshots {
	return &snapshots{closed: closed, source: source, turn: make(chan struct{}, 1)}
}

// get returns the current snapshot. The caller must not change it.
func (s *snapshots) get(ctx context.Context) (*messages.Snapshot, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.at.IsZero() || time.Since(s.at) >= snapshotAge {
		s.last, s.err = s.take()
		s.at = time.Now()
	}
	return s.last, s.err
}

// take takes a snapshot. It does not end with the one who asks, because others wait for it.
func (s *snapshots) take() (*messages.Snapshot, error) {
	ctx, cancel := context.WithTimeout(s.closed, inspectTimeout)
	defer cancel()
	reply, err := s.source.Client().Do(ctx, &messages.Inspect{Limit: -1})
	if err != nil {
		return nil, err
	}
	return reply.(*messages.Snapshot), nil
}

// stopped reports whether an error means that there will be no further snapshot.
func stopped(err error) bool {
	return errors.Is(err, messages.CodeClosed) || errors.Is(err, messages.CodeInvalid)
}
