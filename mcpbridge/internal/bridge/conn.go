package bridge

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// cleanupTimeout bounds what has to be cleaned up after a dial that failed.
const cleanupTimeout = time.Second

// conn is the [dial.Conn] over every transport.
type conn struct {
	transport.Session
	at     *endpoint
	leave  sync.Once // for the release of at
	client *sdkClient
	link   transport.Conn     // nil if Connect of the transport has failed
	cs     *mcp.ClientSession // nil until the handshake has succeeded
	info   dial.Info          // read-only once the session is open

	key          messages.Key
	introduction *messages.Introduction // of the dial; read-only
	begun        atomic.Uint64          // how many operations have begun
	result       atomic.Uint64          // the number of the last one that had a result
	callbacks    callbacks
	doubts       doubts
	controls     controlOpener

	wroteText atomic.Bool // the server has written text that is no message

	cancel context.CancelFunc // ends Cut, and with it all waiting

	isClosing atomic.Bool // the bridge itself ends the connection
	closing   sync.Once
	closed    chan struct{} // closed when the SDK has closed; made by closing
}

// controlOpener opens controls: see [controls].
type controlOpener interface {
	open(ctx context.Context, first *conn, p permit) (control, *mcpbridge.Error)
	// endFor ends the control that is kept for a session.
	endFor(ctx context.Context, first *conn) error
}

// newExchange returns a new exchange for the session.
func (c *conn) newExchange(ctx context.Context) *wire.Exchange {
	return wire.NewExchange(ctx, &c.callbacks, c.at.URL != "")
}

// hasID reports whether the server has given the session an id.
func (c *conn) hasID() bool { return c.cs != nil && c.cs.ID() != "" }

// hasExpired reports whether the session has expired.
func (c *conn) hasExpired() bool {
	session := c.link.Resumable()
	return session != nil && session.HasExpired()
}

// sessionID returns the id by which the server knows the session, or nothing.
func (c *conn) sessionID() string {
	session := c.link.Resumable()
	if session == nil {
		return ""
	}
	return session.SessionID()
}

// Info describes the session.
func (c *conn) Info() dial.Info { return c.info }

// Resume returns what is needed to resume the session, or nil if it has no id or has expired.
func (c *conn) Resume() *mcpbridge.Resume {
	session := c.link.Resumable()
	if session == nil || !c.hasID() || session.HasExpired() {
		return nil
	}
	id := session.SessionID()
	return &mcpbridge.Resume{
		SessionID: id, Server: c.info.Server, Endpoint: c.at.fingerprint,
		Identity: c.at.identity(id, c.Identity), Cookies: session.Cookies(), Declared: c.info.Declared,
	}
}

// Hint reports whether a tool may run twice. See [dial.Conn].
func (c *conn) Hint(tool string) (safe, known bool) { return c.callbacks.hints.of(tool) }

// secrets returns what no error text about the session may contain.
func (c *conn) secrets() []string {
	if c.link == nil {
		return c.at.transport().Secrets()
	}
	return c.link.Secrets()
}

// explain returns what err means. If the server has ended, the error says how.
func (c *conn) explain(ctx context.Context, ex *wire.Exchange, err error) *mcpbridge.Error {
	id := c.cs.ID()
	e := ex.Explain(ctx, err, cmp.Or(ex.As, id), append(c.secrets(), id)...)
	if e.Session == mcpbridge.Broken {
		if e.Class == mcpbridge.Lost && c.link.NeverRead(ex) {
			e.Class = mcpbridge.NotSent
		}
		c.describeEnd(e)
	}
	if e.Class == mcpbridge.Unauthorized || e.Class == mcpbridge.ServerError && e.Status != http.StatusNotImplemented { // the URL is right: the session is open
		e.Remedy = remedyFor(e, &c.at.Server)
	}
	return e
}

// describeEnd writes into an error how the server ended, and reports whether that is known.
func (c *conn) describeEnd(e *mcpbridge.Error) (known bool) {
	detail, quote := c.link.DescribeEnd()
	if detail != "" {
		e.Detail, e.Quote = detail, quote
	}
	return detail != ""
}

// Close ends the session on the server, and then the control that an inquiry may have opened, whose initialize the server may
// still not have answered. Then it ends the transport.
func (c *conn) Close(ctx context.Context) error {
	c.isClosing.Store(true)
	c.doubts.end(ctx)
	c.link.Closing()
	defer c.at.releaseIdle()
	refused := c.link.EndSession(ctx)
	control := c.controls.endFor(ctx, c)
	return errors.Join(refused, control, c.Detach(ctx))
}

// Detach ends the transport. It ends the calls first, because the SDK would wait for them (go-sdk#1183).
func (c *conn) Detach(ctx context.Context) error {
	c.isClosing.Store(true)
	defer c.leave.Do(c.at.release)
	c.doubts.end(ctx)
	c.link.Closing()
	c.cancel()
	c.closing.Do(func() {
		c.closed = make(chan struct{})
		go func() {
			defer close(c.closed)
			if c.cs != nil {
				c.cs.Close() // its error is about the transport, which is closed below
			}
		}()
	})
	if err := c.link.Close(ctx); err != nil {
		return err
	}
	// All waiting has been cut, so that a short time is enough, even if ctx has ended.
	select {
	case <-c.closed:
		return nil
	case <-time.After(time.Second):
		return errors.New("the session did not let go of its transport")
	}
}

// discard closes what a failed handshake has left. A session that was to be resumed stays on the server, because a later
// dial may resume it. The error is that of a session that the server may still have: Close ends it.
func (c *conn) discard() (left error) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	defer c.leave.Do(c.at.release)
	if c.link == nil {
		c.cancel()
		return nil
	}
	if session := c.link.Resumable(); session != nil {
		left = session.Discard(ctx)
	}
	if c.cs != nil {
		c.Detach(ctx) //nolint:errcheck // the error that led here is the one to report
		return left
	}
	c.cancel()
	c.link.Kill()
	c.link.Close(ctx) //nolint:errcheck // as above
	return left
}
