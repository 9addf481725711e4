package bench

import (
	"context"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// imaginary is a dialer whose sessions answer at once: what is left is our own
// path. A dial waits for gate, if there is one.
type imaginary struct{ gate chan struct{} }

// Dial opens a session.
func (i imaginary) Dial(ctx context.Context, _ mcpbridge.DialRequest) (mcpbridge.Conn, error) {
	if i.gate != nil {
		select {
		case <-i.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return instant{}, nil
}

// open opens a session for a baseline.
func (i imaginary) open(ctx context.Context) (session, error) {
	conn, err := i.Dial(ctx, mcpbridge.DialRequest{})
	if err != nil {
		return nil, err
	}
	return direct{conn}, nil
}

// supervise starts a supervisor with the dialer.
func (i imaginary) supervise(cfg supervisor.Config) (*supervised, error) {
	cfg.WrapDialer = func(mcpbridge.Dialer) mcpbridge.Dialer { return i }
	return supervise(mcpbridge.Server{URL: "http://imaginary.invalid"}, cfg)
}

// instant is a session of it.
type instant struct{}

// Do answers.
func (instant) Do(context.Context, messages.Operation) (messages.Result, error) {
	return &messages.ToolResult{}, nil
}

// Hint knows nothing.
func (instant) Hint(string) (safe, known bool) { return false, false }

// Info has nothing.
func (instant) Info() mcpbridge.Info { return mcpbridge.Info{} }

// Resume has nothing.
func (instant) Resume() *mcpbridge.Resume { return nil }

// Close does nothing.
func (instant) Close(context.Context) error { return nil }

// Detach does nothing.
func (instant) Detach(context.Context) error { return nil }

// direct is such a session as baselines see it.
type direct struct{ mcpbridge.Conn }

func (d direct) call(ctx context.Context) error {
	_, err := d.Do(ctx, command(oneKey))
	return err
}

func (d direct) close() error { return d.Close(context.Background()) }
