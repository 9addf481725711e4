package bridge

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

const (
	// discoverTimeout is how long a server with a URL may take to answer server/discover.
	discoverTimeout = 5 * time.Second
	// discoverSilence is how long any other server may take that has read server/discover. Then the same process is sent
	// initialize.
	discoverSilence = 400 * time.Millisecond
)

// errSilent is the reason why a handshake is aborted, or server/discover given up.
var errSilent = errors.New("the server does not answer server/discover")

// abortIfSilent aborts the handshake if the server has not answered server/discover in time. The SDK cannot go on with
// initialize over HTTP, where the request for server/discover is still open.
func (c *conn) abortIfSilent(connecting context.Context) {
	if !c.awaitSilence(connecting, discoverTimeout) {
		return
	}
	if h := c.dialing.Load(); h != nil {
		h.abort(&mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: errSilent.Error(), Err: errSilent})
	}
}

// awaitSilence waits until the server has been silent for d after it had read server/discover, and reports whether it was. A
// server that is slow to start has not read it yet.
func (c *conn) awaitSilence(ctx context.Context, d time.Duration) bool {
	const steps = 10
	tick := time.NewTicker(d / steps)
	defer tick.Stop()
	for quiet := 0; quiet < steps; {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
			if c.Discovery.IsUnanswered() && c.link.HasRead() {
				quiet++
			}
		}
	}
	return true
}

// discover sends server/discover. If a server without a URL is silent, discover gives the request up. Then the SDK sends
// initialize to the same process. A result that still comes says what to ask for at the next start.
func (c *conn) discover(ctx context.Context, send func(context.Context) (mcp.Result, error)) (mcp.Result, error) {
	if c.IsOpen.Load() { // it is a ping
		return send(ctx)
	}
	if c.at.URL != "" {
		result, err := send(ctx)
		c.info.Odd = wire.ExchangeOf(ctx).Odd()
		return result, err
	}
	patience := discoverSilence
	if c.at.dialect.isLate() {
		patience = max(patience, c.ConnectTimeout/2)
	}
	ex := c.newExchange(c.Cut) // that of the handshake is for initialize
	ctx, end := context.WithCancel(wire.InExchange(ctx, ex))
	answered := make(chan struct{})
	c.discovery = discovery{end: end, answered: answered}
	var result mcp.Result // belongs to the goroutine until answered is closed, like err
	var err error
	go func() {
		defer end()
		defer close(answered)
		result, err = guard.Call(func() (mcp.Result, error) { return send(ctx) })
		c.discovery.newer = err == nil && speaksNewer(result)
	}()
	if c.awaitSilence(ctx, patience) {
		select {
		case <-answered:
		default:
			c.discovery.gaveUp = true
			return nil, errSilent
		}
	}
	<-answered
	c.info.Odd = ex.Odd()
	return result, err
}

// notInitialized waits for the answer to server/discover, if that was given up, because initialize has failed. A server that
// does not know initialize may take as long as the handshake may. Then the request is ended: the SDK would wait for it
// before it closes the connection.
func (c *conn) notInitialized(ctx context.Context, err error) {
	if !c.discovery.gaveUp {
		return
	}
	patience := discoverTimeout
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && (refused.Code == jsonrpc.CodeMethodNotFound || refused.Code == mcp.CodeUnsupportedProtocolVersion) {
		patience = c.ConnectTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-c.discovery.answered:
	case <-ctx.Done():
	}
	c.discovery.end()
}

// speaksNewer reports whether a result of server/discover has a version that initialize does not have.
func speaksNewer(result mcp.Result) bool {
	found, ok := result.(*mcp.DiscoverResult)
	return ok && slices.ContainsFunc(found.SupportedVersions, func(version string) bool { return version > protocolLegacy })
}

// failedAtDiscovery reports whether a handshake has failed because of server/discover, and remembers that: it was not answered,
// it has ended the process, or it was answered too late. It may wait for a moment.
func (c *conn) failedAtDiscovery(ex *wire.Exchange, e *mcpbridge.Error) bool {
	if errors.Is(e, errSilent) {
		c.at.dialect.setLegacy(false)
		return true
	}
	if c.discovery.answered == nil {
		return false
	}
	c.discovery.end()
	<-c.discovery.answered
	switch newer := c.discovery.newer; {
	case newer && c.discovery.gaveUp:
		c.at.dialect.setLate()
		return true
	case !newer && !ex.IsAnswered() && c.link.EndedAfterReading():
		c.at.dialect.setLegacy(true)
		return true
	}
	return false
}

// learnLate waits for the answer to server/discover that was given up, as long as the session lasts.
func (c *conn) learnLate(ctx context.Context) {
	<-c.discovery.answered
	if c.discovery.newer {
		c.at.dialect.setLate()
		c.at.dialect.remember(ctx, c.record)
	}
}
