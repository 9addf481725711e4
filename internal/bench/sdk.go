package bench

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// client is a way to call the tool of a server. Each key has a session of its own.
type client interface {
	call(ctx context.Context, key string) error
	// drop closes the session of a key, and waits for that.
	drop(ctx context.Context, key string) error
	close() error
}

// opener opens a client of a server.
type opener func(r route) (client, error)

// session is one session, as baselines see it.
type session interface {
	call(ctx context.Context) error
	close() error
}

// sdkSession is a session of the SDK.
type sdkSession struct{ *mcp.ClientSession }

func (s sdkSession) call(ctx context.Context) error {
	_, err := s.CallTool(ctx, echoParams())
	return err
}

func (s sdkSession) close() error { return s.Close() }

// connect opens a session of the SDK. An empty protocol version is the SDK's choice.
func (p *setup) connect(ctx context.Context, t mcp.Transport, version string) (session, error) {
	cs, err := p.sdk.Connect(ctx, t, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, err
	}
	return sdkSession{cs}, nil
}

// bare keeps sessions in a map without a lock: the first call of a key must not run
// beside others.
type bare struct {
	route
	sessions map[string]session
}

func openBare(r route) (client, error) { return &bare{r, map[string]session{}}, nil }

func (b *bare) call(ctx context.Context, key string) error {
	s := b.sessions[key]
	if s == nil {
		var err error
		if s, err = b.open(ctx); err != nil {
			return err
		}
		b.sessions[key] = s
	}
	return s.call(ctx)
}

func (b *bare) drop(_ context.Context, key string) error {
	s := b.sessions[key]
	delete(b.sessions, key)
	s.close() //nolint:errcheck // the calls are what is measured
	return nil
}

func (b *bare) close() error {
	for _, s := range b.sessions {
		s.close() //nolint:errcheck // the calls are what is measured
	}
	return nil
}

// perCall opens a session for each call.
type perCall struct{ route }

func openPerCall(r route) (client, error) { return perCall{r}, nil }

func (c perCall) call(ctx context.Context, _ string) error {
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer s.close() //nolint:errcheck // the call is what is measured
	return s.call(ctx)
}

func (perCall) drop(context.Context, string) error { return nil }

func (perCall) close() error { return nil }
