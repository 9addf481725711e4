package mcpbridge

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// Conn is one MCP session with the transport under it.
type Conn interface {
	// Do runs one operation until its answer, or until ctx ends. The error is
	// an [*Error].
	Do(ctx context.Context, op messages.Operation) (messages.Result, error)
	// Replayable reports whether the server annotated a tool as read-only or
	// idempotent. It asks the server if that is not known yet.
	Replayable(ctx context.Context, tool string) (bool, error)
	// Info describes the session.
	Info() Info
	// Resume returns what it takes to attach to the session again, or nil
	// where that cannot be.
	Resume() *Resume
	// Close ends the session and its transport, before ctx ends. It may be
	// called again when it failed. Operations that are still running fail.
	Close(ctx context.Context) error
}

// Info describes a session.
type Info struct {
	// Server is what the server said of itself. Read-only.
	Server *mcp.InitializeResult
	// Stateless is true over HTTP without a session id: nothing can expire.
	Stateless bool
	// Attached is true when the session is the one that [DialRequest.Resume]
	// named.
	Attached bool
}

// conn is the Conn of all transports.
type conn struct {
	at   *endpoint
	cs   *mcp.ClientSession
	info Info

	x    *exchanger // nil but for HTTP
	tap  *tap       // nil for streamable HTTP
	proc *process   // nil but for stdio

	// cut ends whatever the session waits for. It is the means to end the
	// session from outside.
	cut    context.Context
	cancel context.CancelFunc

	closing sync.Once
	closed  chan struct{} // closed when the SDK has closed
}

// Info describes the session.
func (c *conn) Info() Info { return c.info }

// Resume returns what it takes to attach again.
func (c *conn) Resume() *Resume {
	if id := c.cs.ID(); id != "" && c.x != nil && !c.x.sse {
		return &Resume{SessionID: id, Server: c.info.Server}
	}
	return nil
}

// Do runs one operation.
func (c *conn) Do(ctx context.Context, op messages.Operation) (result messages.Result, err error) {
	defer recovered(&err)
	inner, ex := withExchange(ctx)
	inner, cancel := context.WithCancel(inner)
	defer cancel()
	defer context.AfterFunc(c.cut, cancel)()
	if c.tap != nil {
		defer func() { c.tap.forget(ex.id) }()
	}
	result, err = run(inner, c.cs, op)
	if err != nil {
		return nil, c.explain(ctx, ex, err)
	}
	if list, ok := result.(*messages.ToolList); ok {
		c.at.learn(list.Result.Tools)
	}
	return result, nil
}

// Replayable reports whether a tool may run twice.
func (c *conn) Replayable(ctx context.Context, tool string) (bool, error) {
	if safe, known := c.at.hint(tool); known {
		return safe, nil
	}
	if _, err := c.Do(ctx, &messages.ListTools{}); err != nil {
		return false, err
	}
	safe, _ := c.at.hint(tool)
	return safe, nil
}

// explain says what err means, with the process's last words if it died.
func (c *conn) explain(ctx context.Context, ex *exchange, err error) *Error {
	e := ex.explain(ctx, err, c.cs.ID())
	if c.proc != nil && e.Session == Broken {
		e.Detail = c.lastWords(e.Detail)
	}
	return e
}

// lastWords adds to the end of a stdio session what the process left.
func (c *conn) lastWords(detail string) string {
	text := "the server process " + c.proc.obituary()
	if c.tap.nonsense() != nil {
		text += " (" + detail + ")"
	}
	return text
}

// broke returns the error for a connection that ended by itself.
func (c *conn) broke(err error) *Error {
	e := &Error{Class: Lost, Session: Broken, Detail: describe(err)}
	if c.proc != nil {
		e.Detail = c.lastWords(e.Detail)
	}
	return e
}

// Close ends the session on the server, then here.
func (c *conn) Close(ctx context.Context) error {
	var err error
	if c.tap != nil {
		c.tap.close()
	}
	if c.x != nil {
		err = c.x.delete(ctx)
	}
	c.cancel()
	c.closing.Do(func() {
		go func() {
			defer close(c.closed)
			c.cs.Close() //nolint:errcheck // what it says is of the transport, which is ours
		}()
	})
	if c.proc != nil {
		err = c.proc.stop(ctx)
	}
	// With everything cut there is nothing left to wait for, so a short time
	// is enough also when ctx has none left.
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-c.closed:
	case <-timer.C:
		if err == nil {
			err = fmt.Errorf("the session did not let go of its transport")
		}
	}
	return err
}

// recovered turns a panic, of a hook or of the SDK, into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = &Error{
			Class: Internal, Sent: true, Detail: clean(fmt.Sprint("panic: ", r)),
			Err: fmt.Errorf("panic: %v\n%s", r, debug.Stack()),
		}
	}
}
