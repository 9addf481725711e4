package bench

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is what the baselines keep: a session of the SDK, or an imaginary one.
type session interface {
	call(ctx context.Context) error
	close() error
}

// bare is a session of the SDK.
type bare struct{ cs *mcp.ClientSession }

func (b bare) call(ctx context.Context) error {
	_, err := b.cs.CallTool(ctx, echoParams())
	return err
}

func (b bare) close() error { return b.cs.Close() }

// open opens a session of the SDK.
func (w wire) open(ctx context.Context) (session, error) {
	cs, err := w.connect(ctx)
	if err != nil {
		return nil, err
	}
	return bare{cs}, nil
}

// startBare opens one session for all calls.
func startBare(w wire, callers int) func(context.Context) (*running, error) {
	return func(ctx context.Context) (*running, error) {
		s, err := w.open(ctx)
		if err != nil {
			return nil, err
		}
		return warm(callers, s.call, s.close), nil
	}
}

// startPerCall opens a session for each call.
func startPerCall(w wire, callers int) func(context.Context) (*running, error) {
	return func(context.Context) (*running, error) {
		return warm(callers, w.callOnce, func() error { return nil }), nil
	}
}

// callOnce opens a session, calls, and closes it.
func (w wire) callOnce(ctx context.Context) error {
	s, err := w.open(ctx)
	if err != nil {
		return err
	}
	defer s.close() //nolint:errcheck // the call counts
	return s.call(ctx)
}
