package outbound

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/internal/clock"
	"github.com/mcpactor/mcpactor/internal/identity"
	"github.com/mcpactor/mcpactor/internal/rounds"
	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/hold"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// holds keeps the calls of a session back while the server wants none with their credentials. After a 429 with Retry-After, all
// sessions with the same credentials and the same URL do so.
type holds struct {
	book   *hold.Book
	config *mcpbridge.Server
	owner  string // see [mcpbridge.Identified]
}

// check returns an error for a call that is held, or nil. A call that was sent before, and is repeated, is not held.
func (h *holds) check(req *http.Request, credentials http.Header) error {
	if h.book.IsEmpty() || req.Method != http.MethodPost {
		return nil
	}
	ex := wire.ExchangeOf(req.Context())
	if !isHeld(ex.Operation) || ex.MayHaveReached() {
		return nil
	}
	now := time.Now()
	until := h.book.Until(h.key(credentials), now)
	if until.IsZero() {
		return nil
	}
	return &mcpbridge.Error{
		Class: mcpbridge.RateLimited, RetryAfter: until.Sub(now),
		Detail: "not sent: the server has answered 429, and wants no such calls until " + clock.Text(until),
	}
}

// isHeld reports whether an operation can be held: one that a caller wants to run. What opens, keeps or closes sessions, or cancels
// something, cannot, and neither can a later round: its call runs.
func isHeld(op messages.Operation) bool {
	switch op := op.(type) {
	case *messages.CallTool, *messages.GetPrompt, *messages.ReadResource, *messages.Complete:
		return !rounds.IsLater(op)
	case *messages.Custom:
		return op.Name != tasks.MethodCancel
	}
	return false
}

// note notes what the response to a request of a caller with credentials says about later ones. A server may count sessions and streams on
// their own: then open sessions need no pause.
func (h *holds) note(req *http.Request, credentials http.Header, resp *http.Response) {
	if resp.StatusCode != http.StatusTooManyRequests || req.Method != http.MethodPost || wire.ExchangeOf(req.Context()).Operation == nil {
		return
	}
	if wanted := wire.RetryAfter(resp.Header); wanted > 0 {
		h.book.Note(h.key(credentials), time.Now(), wanted)
	}
}

// key identifies the place of the server, and whom it takes the session for. It does not reveal credentials.
func (h *holds) key(credentials http.Header) string {
	sum := identity.NewSum()
	sum.Add(identity.Of(h.config.HTTPClient), h.owner)
	sum.AddMap(h.config.Headers)
	if h.owner == "" { // else they change while the owner stays the same
		for _, name := range slices.Sorted(maps.Keys(credentials)) {
			sum.Add(name)
			sum.Add(credentials[name]...)
		}
	}
	return h.config.Endpoint() + sum.String()
}
