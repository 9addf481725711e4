package benchmarks

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is one session, as baselines see it.
type session interface {
	call(ctx context.Context) error
	close()
}

// sdkSession is a session of the SDK.
type sdkSession struct{ *mcp.ClientSession }

func (s sdkSession) call(ctx context.Context) error {
	_, err := s.CallTool(ctx, echoParams())
	return err
}

func (s sdkSession) close() { s.Close() }

// sdk is the client of all sessions.
var sdk = mcp.NewClient(implementation, nil)

// connect opens a session of the SDK. An empty protocol version is the SDK's choice.
func connect(ctx context.Context, t mcp.Transport, version string) (session, error) {
	cs, err := sdk.Connect(ctx, t, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, err
	}
	return sdkSession{cs}, nil
}

// bare keeps sessions in a map without a lock: the first call of a key must not run beside others.
type bare struct {
	route
	sessions map[string]session
}

func openBare(r route) (client, error) { return &bare{r, map[string]session{}}, nil }

// openUntuned is openBare with the HTTP client that the SDK takes by default.
func openUntuned(r route) (client, error) { return openBare(overHTTP(r.name, r.server.URL, untuned)) }

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
	b.sessions[key].close()
	delete(b.sessions, key)
	return nil
}

func (b *bare) close() {
	for _, s := range b.sessions {
		s.close()
	}
}

// perCall opens a session for each call.
type perCall struct{ route }

func openPerCall(r route) (client, error) { return perCall{r}, nil }

func (c perCall) call(ctx context.Context, _ string) error {
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	return s.call(ctx)
}

func (perCall) drop(context.Context, string) error { return nil }
func (perCall) close()                             {}
