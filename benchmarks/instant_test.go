package benchmarks

import (
	"context"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// instantDialer opens sessions that answer at once, without MCP. What remains of a call is the way
// through the actors.
type instantDialer struct{}

func (instantDialer) Dial(context.Context, dial.Request) (dial.Conn, error) {
	return instantConn{}, nil
}

// instantly is the way to sessions that answer at once.
func instantly() route {
	return route{
		name: "none", server: mcpbridge.Server{URL: "http://instant.invalid"}, dialer: instantDialer{},
		open: func(context.Context) (session, error) { return instantSession{}, nil },
	}
}

// instantConn is a session that answers at once.
type instantConn struct{}

func (instantConn) Do(context.Context, messages.Operation) (messages.Result, error) {
	return &messages.ToolResult{}, nil
}

func (instantConn) Hint(string) (safe, known bool) { return false, false }
func (instantConn) Info() dial.Info                { return dial.Info{} }
func (instantConn) Resume() *mcpbridge.Resume      { return nil }
func (instantConn) Close(context.Context) error    { return nil }
func (instantConn) Detach(context.Context) error   { return nil }

// instantSession is such a session as baselines see it.
type instantSession struct{ instantConn }

func (s instantSession) call(ctx context.Context) error {
	_, err := s.Do(ctx, command(oneKey))
	return err
}

func (instantSession) close() {}
