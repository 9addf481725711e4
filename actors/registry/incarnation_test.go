package registry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// scripted is a dialer of the server scripted, whose dials take their turns with dials. The turns of a synctest
// bubble order all access.
type scripted struct {
	stub
	dials []func(ctx context.Context) (dial.Conn, error)
	asked []dial.Request // for each dial
	live  int            // connections that are not closed
	most  int
}

func (d *scripted) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	if req.Key.Server != "scripted" {
		return d.stub.Dial(ctx, req)
	}
	d.asked = append(d.asked, req)
	if len(d.asked) > len(d.dials) {
		return nil, errors.New("there is no such dial")
	}
	conn, err := d.dials[len(d.asked)-1](ctx)
	if err == nil {
		d.live++
		d.most = max(d.most, d.live)
	}
	return conn, err
}

// opens returns a connection whose end takes a time.
func (d *scripted) opens(ends time.Duration) *endingConn {
	return &endingConn{stubConn: stubConn{s: &d.stub, cut: make(chan struct{})}, d: d, ends: ends}
}

// opened is a dial that returns a connection.
func opened(conn dial.Conn) func(context.Context) (dial.Conn, error) {
	return func(context.Context) (dial.Conn, error) { return conn, nil }
}

// endingConn is a connection whose end takes a time. Its calls fail with err, if there is one.
type endingConn struct {
	stubConn
	d    *scripted
	ends time.Duration
	err  *mcpbridge.Error
}

func (c *endingConn) Do(ctx context.Context, op messages.Operation) (messages.Result, error) {
	if c.err != nil {
		return nil, c.err
	}
	return c.stubConn.Do(ctx, op)
}

func (c *endingConn) Detach(context.Context) error {
	time.Sleep(c.ends)
	c.once.Do(func() { c.d.live-- })
	return nil
}
func (c *endingConn) Close(ctx context.Context) error { return c.Detach(ctx) }

// inScript runs a scenario with the server scripted.
func inScript(t *testing.T, d *scripted, scenario func(w *watchedRegistry)) {
	inWatchedRegistry(t, scenario, func(cfg *protocol.Config) {
		cfg.Dialer = d
		cfg.Servers = append(cfg.Servers, mcpbridge.Server{Name: "scripted"})
	})
	require.Zero(t, d.live, "all connections are closed")
}

// callScripted calls a tool of the server scripted.
func (w *watchedRegistry) callScripted() *protocol.Future {
	return w.send(&messages.CallTool{Header: messages.To("scripted", "a"), Params: &mcp.CallToolParams{Name: "fast"}})
}

// Guarantees 2 and 8: a dial that was abandoned may open a connection nevertheless. It is closed, and the next dial of the key
// waits for that.
func TestTheConnectionOfAnAbandonedDialIsClosedBeforeTheNextDial(t *testing.T) {
	d := &scripted{}
	d.dials = []func(context.Context) (dial.Conn, error){
		func(context.Context) (dial.Conn, error) {
			return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Absent}
		},
		func(ctx context.Context) (dial.Conn, error) {
			<-ctx.Done()
			return d.opens(time.Second), nil
		},
		func(context.Context) (dial.Conn, error) { return d.opens(0), nil },
	}
	inScript(t, d, func(w *watchedRegistry) {
		call := w.callScripted()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Len(t, d.asked, 2, "the probe runs")
		w.send(&messages.Forget{Server: "scripted"}) // it abandons the probe
		require.IsType(t, &messages.ToolResult{}, <-call.Reply)
		synctest.Wait()
		require.Len(t, d.asked, 3)
		require.Equal(t, 1, d.most, "at a time")
		require.Equal(t, 1, d.live)
	})
}

// Guarantee 8: a dial that was abandoned after an expiry may have opened an MCP session. It is not the one that has expired: the
// next dial resumes it.
func TestTheSessionOfAnAbandonedDialIsResumedAfterAnExpiry(t *testing.T) {
	d := &scripted{}
	opens := func(id string) *resumable {
		conn := d.opensResumable()
		conn.id = id
		return conn
	}
	expired := opens("expired")
	d.dials = []func(context.Context) (dial.Conn, error){
		opened(expired),
		func(context.Context) (dial.Conn, error) {
			return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Absent}
		},
		func(ctx context.Context) (dial.Conn, error) {
			<-ctx.Done()
			return opens("abandoned"), nil
		},
		func(context.Context) (dial.Conn, error) { return opens("last"), nil },
	}
	inScript(t, d, func(w *watchedRegistry) {
		require.IsType(t, &messages.ToolResult{}, <-w.callScripted().Reply)
		another := &messages.CallTool{Header: messages.To("scripted", "b"), Params: &mcp.CallToolParams{Name: "fast"}}
		another.Deadline = time.Now().Add(time.Millisecond)
		require.IsType(t, &messages.Failure{}, <-w.send(another).Reply)
		expired.err = &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Sent: true}
		call := w.callScripted()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Len(t, d.asked, 3, "the probe runs")
		require.Nil(t, d.asked[2].Resume)
		w.send(&messages.Forget{Server: "scripted"}) // it abandons the probe
		require.IsType(t, &messages.ToolResult{}, <-call.Reply)
		require.NotNil(t, d.asked[3].Resume)
		require.Equal(t, "abandoned", d.asked[3].Resume.SessionID)
	})
}

// B4: a connection may tell of its end late. That of an earlier incarnation ends nothing.
func TestTheLateEndOfAnEarlierConnectionRestartsNothing(t *testing.T) {
	d := &scripted{}
	lost := &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Sent: true}
	d.dials = []func(context.Context) (dial.Conn, error){
		func(context.Context) (dial.Conn, error) {
			conn := d.opens(0)
			conn.err = lost
			return conn, nil
		},
		func(context.Context) (dial.Conn, error) { return d.opens(0), nil },
	}
	inScript(t, d, func(w *watchedRegistry) {
		require.Equal(t, messages.CodeLost, (<-w.callScripted().Reply).(*messages.Failure).Code)
		require.IsType(t, &messages.ToolResult{}, <-w.callScripted().Reply)
		synctest.Wait()
		d.asked[0].Down(lost)
		synctest.Wait()
		require.IsType(t, &messages.ToolResult{}, <-w.callScripted().Reply)
		synctest.Wait()
		require.Len(t, d.asked, 2, "dials")
		require.Equal(t, messages.StateReady, w.table.Entry(messages.Key{Server: "scripted", Scope: "a"}).Current.State())
	})
}
