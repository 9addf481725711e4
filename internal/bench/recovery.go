package bench

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/supervisor"
)

// protocolOfHTTP is the protocol of sessions over HTTP: newer ones have none there.
const protocolOfHTTP = "2025-11-25"

// witness sees what goes over HTTP: when a call was refused, and how many sessions
// were asked for.
type witness struct {
	inner   http.RoundTripper
	refused atomic.Int64 // when that was, last
	asked   atomic.Int64 // requests without a session
}

// RoundTrip passes a request on.
func (w *witness) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost && req.Header.Get(headerSession) == "" {
		w.asked.Add(1)
	}
	resp, err := w.inner.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusNotFound && req.Method == http.MethodPost {
		w.refused.Store(int64(time.Since(epoch)))
	}
	return resp, err
}

// epoch is what a witness counts from.
var epoch = time.Now()

// sinceRefused is the time since a call was refused last.
func (w *witness) sinceRefused() (time.Duration, error) {
	at := w.refused.Swap(0)
	if at == 0 {
		return 0, errors.New("bench: the session should have expired, and no call was refused")
	}
	return time.Since(epoch) - time.Duration(at), nil
}

// expiring returns the server whose sessions can be made to expire, as somebody
// sees it who knows already that it speaks no newer protocol; and the witness.
func (p *place) expiring() (wire, *witness) {
	seen := &witness{inner: p.tuned.Transport}
	client := &http.Client{Transport: seen}
	w := p.overHTTP(nameJSON, p.origin+pathExpiring, client)
	w.server.HTTPClient = client
	w.connect = func(ctx context.Context) (*mcp.ClientSession, error) {
		transport := &mcp.StreamableClientTransport{Endpoint: w.url, HTTPClient: client}
		return p.client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: protocolOfHTTP})
	}
	return w, seen
}

// recovery is the time from the answer that says that the session expired to the
// result of the call.
func (p *place) recovery() []*Case {
	return []*Case{{
		Scenario: "recovery", Params: params("transport", nameJSON),
		About:    "from the answer that the session expired to the result; bare: initialize and a call",
		Baseline: nameBare,
		contenders: []contender{
			{nameBare, func(context.Context) (*running, error) {
				w, _ := p.expiring()
				return oneByOne(w.firstBare, noClose), nil
			}},
			{"discover", func(context.Context) (*running, error) { // as Connect does it by itself
				return oneByOne(p.overHTTP(nameJSON, p.origin+pathExpiring, p.tuned).firstBare, noClose), nil
			}},
			{nameMutexMap, func(context.Context) (*running, error) {
				w, seen := p.expiring()
				m := newMutexMap(many, w.open)
				return p.recovering(seen, func(ctx context.Context) error { return m.call(ctx, oneKey) }, m.close), nil
			}},
			{nameMessage, func(context.Context) (*running, error) {
				w, seen := p.expiring()
				s, err := supervise(w.server, patient)
				if err != nil {
					return nil, err
				}
				return p.recovering(seen, func(context.Context) error { return s.message(oneKey) }, s.close), nil
			}},
			{nameClient, func(context.Context) (*running, error) {
				w, seen := p.expiring()
				s, err := supervise(w.server, patient)
				if err != nil {
					return nil, err
				}
				return p.recovering(seen, func(ctx context.Context) error { return s.call(ctx, oneKey) }, s.close), nil
			}},
		},
	}}
}

// patient has a budget for sessions that expire all the time: the default one would
// slow them down, which is what it is for.
var patient = supervisor.Config{Budget: 1 << 30}

// recovering makes the session expire before each call.
func (p *place) recovering(seen *witness, call func(context.Context) error, close func() error) *running {
	return oneByOne(func(ctx context.Context, _ int) (time.Duration, error) {
		if err := call(ctx); err != nil { // there is a session
			return 0, err
		}
		if err := p.expire(ctx); err != nil {
			return 0, err
		}
		seen.refused.Store(0)
		if err := call(ctx); err != nil {
			return 0, err
		}
		return seen.sinceRefused()
	}, close)
}
