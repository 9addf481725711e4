package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

const (
	// discoverTimeout is how long a server with a URL may take to answer server/discover.
	discoverTimeout = 5 * time.Second
	// discoverSilence is how long any other server may take that has read server/discover, or as long as it has taken to read it, which
	// is longer on a busy machine, up to maxDiscoverSilence. Then the same process is sent initialize.
	discoverSilence    = 400 * time.Millisecond
	maxDiscoverSilence = 2 * time.Second
)

// errSilent is the reason why a handshake is aborted, or server/discover given up.
var errSilent = errors.New("the server does not answer server/discover")

// handshake is the handshake of a session. It decides how long the answer to server/discover is awaited. The methods that the
// middleware calls may be called on a nil handshake, which is over.
type handshake struct {
	ctx     context.Context // of its requests, with their exchange
	abort   context.CancelCauseFunc
	session *transport.Session
	server  *mcpbridge.Server
	dialect *dialect
	link    transport.Conn // nil until the transport has connected

	odd      []string        // what is odd about what the server says about itself
	verbatim json.RawMessage // the result of initialize or server/discover as the server has sent it, if the configuration says so

	// These are for server/discover to a server without a URL.
	endDiscover context.CancelFunc // ends the request
	answered    chan struct{}      // closed when the request has ended; nil if there was none
	newer       bool               // the result has a version that initialize does not have; valid once answered is closed
	gaveUp      bool               // initialize was sent before the answer came
}

// abortIfSilent aborts the handshake if the server has not answered server/discover in time. The SDK cannot send
// initialize over HTTP while the request for server/discover is still open.
func (h *handshake) abortIfSilent(connecting context.Context) {
	if h.awaitSilence(connecting, discoverTimeout, discoverTimeout) {
		h.abort(&mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: errSilent.Error(), Err: errSilent})
	}
}

// awaitSilence waits until the server has been silent for a time after it had read server/discover, and reports whether it was. The
// time is as long as the server has taken to read it, within bounds. A server that is slow to start has not read it yet.
func (h *handshake) awaitSilence(ctx context.Context, least, most time.Duration) bool {
	const steps = 10
	step := least / steps
	tick := time.NewTicker(step)
	defer tick.Stop()
	began, quiet, wanted := time.Now(), time.Duration(0), time.Duration(0)
	for quiet == 0 || quiet < wanted {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
			if !h.session.Discovery.IsUnanswered() || !h.link.HasRead() {
				continue
			}
			if quiet += step; wanted == 0 {
				wanted = min(max(time.Since(began), least), most)
			}
		}
	}
	return true
}

// discover sends server/discover. If a server without a URL is silent, discover gives the request up. Then the SDK sends
// initialize to the same process. A result that still comes says what to ask for at the next start.
func (h *handshake) discover(ctx context.Context, send func(context.Context) (mcp.Result, json.RawMessage, error)) (mcp.Result, error) {
	if h == nil { // it is a ping
		result, _, err := send(ctx)
		return result, err
	}
	if h.server.URL != "" {
		result, raw, err := send(ctx)
		h.discovered(raw, wire.ExchangeOf(ctx).Odd())
		return result, err
	}
	least, most := discoverSilence, maxDiscoverSilence
	if h.dialect.isLate() {
		least = max(least, h.session.ConnectTimeout/2)
		most = least
	}
	ex := wire.NewExchange(h.session.Cut, wire.ExchangeOf(ctx).Owner, false) // that of the handshake is for initialize
	ctx, end := context.WithCancel(wire.InExchange(ctx, ex))
	h.endDiscover, h.answered = end, make(chan struct{})
	var result mcp.Result // belongs to the goroutine until answered is closed, like raw and err
	var raw json.RawMessage
	var err error
	go func() {
		defer end()
		defer close(h.answered)
		result, err = guard.Call(func() (result mcp.Result, err error) {
			result, raw, err = send(ctx)
			return result, err
		})
		h.newer = err == nil && speaksNewer(result)
	}()
	if h.awaitSilence(ctx, least, most) {
		select {
		case <-h.answered:
		default:
			h.gaveUp = true
			return nil, errSilent
		}
	}
	<-h.answered
	h.discovered(raw, ex.Odd())
	return result, err
}

// discovered notes what the server has said about itself, and what is odd about it.
func (h *handshake) discovered(raw json.RawMessage, odd []string) {
	h.odd = odd
	if h.server.Verbatim {
		h.verbatim = raw
	}
}

// notInitialized waits for the answer to server/discover, if that was given up, because initialize has failed. A server that
// does not know initialize may take as long as the handshake may. Then the request is ended: the SDK would wait for it
// before it closes the connection.
func (h *handshake) notInitialized(ctx context.Context, err error) {
	if h == nil || !h.gaveUp {
		return
	}
	patience := discoverTimeout
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && (refused.Code == jsonrpc.CodeMethodNotFound || refused.Code == mcp.CodeUnsupportedProtocolVersion) {
		patience = h.session.ConnectTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-h.answered:
	case <-ctx.Done():
	}
	h.endDiscover()
}

// introduction returns the further parameters of initialize, and where to keep the result as it came, or nil.
func (h *handshake) introduction() (further map[string]json.RawMessage, keep *json.RawMessage) {
	if h == nil {
		return nil, nil
	}
	if h.server.Verbatim {
		keep = &h.verbatim
	}
	return h.server.Initialize, keep
}

// initializeVersion returns the version that initialize asks for. ours is what the SDK would ask for.
func (h *handshake) initializeVersion(ours string) string {
	if h == nil || h.server.InitializeVersion == "" || h.server.ProtocolVersion != "" {
		return ours
	}
	return h.server.InitializeVersion
}

// refusedInitialize reports whether a handshake that began with initialize was refused by a server that may not have that, and
// remembers it. Over HTTP such servers refuse in several ways.
func (h *handshake) refusedInitialize(e *mcpbridge.Error) bool {
	isRefused := e.Code == jsonrpc.CodeMethodNotFound || e.Code == mcp.CodeUnsupportedProtocolVersion ||
		e.Status == http.StatusBadRequest || e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed
	return isRefused && h.server.InitializeVersion != "" && h.server.ProtocolVersion == "" && h.dialect.setStateless(true)
}

// introduced notes what is odd about the result of initialize.
func (h *handshake) introduced(odd []string) {
	if h != nil {
		h.odd = odd
	}
}

// speaksNewer reports whether a result of server/discover has a version that initialize does not have.
func speaksNewer(result mcp.Result) bool {
	found, ok := result.(*mcp.DiscoverResult)
	return ok && slices.ContainsFunc(found.SupportedVersions, func(version string) bool { return version > protocolLegacy })
}

// failedAtDiscovery reports whether a handshake has failed because of server/discover, and remembers that: it was not answered,
// it has ended the process, or it was answered too late. It may wait for a moment.
func (h *handshake) failedAtDiscovery(ex *wire.Exchange, e *mcpbridge.Error) bool {
	if errors.Is(e, errSilent) {
		h.dialect.setLegacy(false)
		return true
	}
	if h.answered == nil {
		return false
	}
	h.endDiscover()
	<-h.answered
	switch newer := h.newer; {
	case newer && h.gaveUp:
		h.dialect.setLate()
		return true
	case !newer && !ex.IsAnswered() && h.link.EndedAfterReading():
		h.dialect.setLegacy(true)
		return true
	}
	return false
}

// learnLate waits for the answer to server/discover that was given up, as long as the session lasts.
func (h *handshake) learnLate(ctx context.Context, in *record) {
	<-h.answered
	if h.newer {
		h.dialect.setLate()
		h.dialect.remember(ctx, in)
	}
}
