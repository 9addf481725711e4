package bridge

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"

	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
)

const (
	// verdictLimit is how long a caller waits for a verdict, and a server has to answer
	// the question.
	verdictLimit = 5 * time.Second
	// aliveFor is how long the verdict holds that a refusal is not about the session.
	aliveFor = 30 * time.Second
	// maxAlive bounds the refusals that such verdicts are remembered of.
	maxAlive = 256
	// pauseMin and pauseMax bound the time after an inquiry without a verdict in which
	// there is no other.
	pauseMin, pauseMax = time.Second, 30 * time.Second
)

// kind is what refusals have in common: the operation, and the answer.
type kind struct {
	method, tool string
	status       int
	code         int64
}

// verdict is what an inquiry comes to.
type verdict uint8

const (
	verdictUnsettled verdict = iota
	verdictAlive             // the session is known: the refusal is about something else
	verdictDead              // it is not, or it is of no use over a transport without sessions
	verdictLate              // it was not known yet, soon after it was opened
)

// doubts settles whether a session is known after a refusal that may be about it, or
// about something else: once for all callers, by requests that change nothing.
//
//	refusal in doubt ──question──▶ result: alive
//	                          └──▶ refused alike ──control──▶ result: dead
//	                          └──▶ anything else: unsettled      └──▶ else: alive
//
// The question is a ping and one page of a list, on the session itself. The control asks
// a second session the same, and then the first once more, so that what has passed
// meanwhile does not count. See the package documentation.
type doubts struct {
	mu      sync.Mutex
	running *inquiry           // nil: none is
	dead    *inquiry           // the one that has found the session dead
	alive   map[kind]time.Time // until when
	next    time.Time          // no inquiry before that
	pause   time.Duration      // after the last inquiry
}

// inquiry is one question, with its control, for all who wait for the verdict.
type inquiry struct {
	kinds   []kind        // of those who wait; doubts.mu
	done    chan struct{} // closed with the verdict
	verdict verdict
	asked   *mcpbridge.Error // what the question was refused with, or nil
}

// settle returns what an error means when it is in doubt: the error as it is, or one
// that says that the session is gone. It waits for the verdict, within bounds.
func (c *conn) settle(ctx context.Context, op messages.Operation, ex *exchange, e *mcpbridge.Error) *mcpbridge.Error {
	if !e.Doubt || !c.mayBeAbout(op, e) {
		return e
	}
	k := kind{op.Method(), "", e.Status, e.Code}
	if call, ok := op.(*messages.CallTool); ok {
		k.tool = call.Params.Name
	}
	i := c.doubts.inquire(c, k)
	if i == nil {
		return e
	}
	limit := verdictLimit
	if at, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(at)-verdictLimit/50) // the answer takes its time, too
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-i.done:
	case <-timer.C:
		return e
	case <-ctx.Done():
		return e
	}
	// By a 4xx, or an error that is the whole answer, the session is refused and not the
	// call, if the question is refused alike. A 5xx may come after the call has run.
	unheard := e.Status < 500 && alike(e, i.asked) && !ex.hadRounds()
	settled := *e
	switch i.verdict {
	case verdictDead:
	case verdictLate:
		if unheard {
			settled.Class, settled.Doubt = mcpbridge.NotSent, false
		}
		return &settled
	default:
		return e
	}
	settled.Doubt, settled.Class, settled.Session = false, mcpbridge.Lost, mcpbridge.Gone
	settled.Detail, settled.Quote = "the server refuses the session", e.ForCaller() // which may quote arguments
	if !c.hasSession() {
		settled.Session = mcpbridge.Broken
		unheard = unheard && c.x != nil && e.Status >= 400 // else it was answered, by whomever
	}
	if unheard {
		settled.Class = mcpbridge.Expired
	}
	return &settled
}

// mayBeAbout reports whether a refusal may be about the session. One that repeats the URI
// is about the resource.
func (c *conn) mayBeAbout(op messages.Operation, e *mcpbridge.Error) bool {
	if c.at.InMemory != nil || c.info.Stateless {
		return false
	}
	read, ok := op.(*messages.ReadResource)
	var said *jsonrpc.Error
	return !ok || e.Code != rpc.CodeInvalidParams || !errors.As(e.Err, &said) ||
		!strings.Contains(said.Message, read.Params.URI) && !bytes.Contains(said.Data, []byte(read.Params.URI))
}

// hasSession reports whether the server can know the session beyond a connection.
func (c *conn) hasSession() bool { return c.x != nil && !c.x.sse }

// inquire returns the inquiry that settles doubt of a kind, which it may have begun; nil
// when there is none: it is settled, or was not to be settled lately.
func (d *doubts) inquire(c *conn, k kind) *inquiry {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	switch {
	case d.dead != nil:
		return d.dead
	case now.Before(d.alive[k]):
		return nil
	case d.running != nil:
		d.running.kinds = append(d.running.kinds, k)
		return d.running
	case now.Before(d.next), c.at.unreachable.Load(), c.cut.Err() != nil:
		return nil
	}
	i := &inquiry{kinds: []kind{k}, done: make(chan struct{})}
	d.running = i
	go d.run(c, i)
	return i
}

// run asks, and tells those who wait.
func (d *doubts) run(c *conn, i *inquiry) {
	ctx, cancel := context.WithCancel(withoutRefresh(c.cut))
	defer cancel()
	results := c.results.Load()
	asked := c.question(ctx)
	i.asked = asked.refusal
	i.verdict = d.judge(ctx, c, i, asked, results)
	switch {
	case i.verdict != verdictDead:
	case i.asked.Session == mcpbridge.Gone:
		c.x.expire(i.asked)
	case c.hasSession():
		c.x.expire(&mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Sent: true, Detail: "the server refuses this session, and answers another"})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = nil
	now := time.Now()
	switch i.verdict {
	case verdictDead:
		d.dead = i
	case verdictUnsettled:
		d.pause = min(max(2*d.pause, pauseMin), pauseMax)
		d.next = now.Add(d.pause)
	case verdictLate:
	case verdictAlive:
		d.pause = 0
		if d.alive == nil || len(d.alive) > maxAlive {
			d.alive = map[kind]time.Time{}
		}
		for _, k := range i.kinds {
			d.alive[k] = now.Add(aliveFor)
		}
	}
	close(i.done)
}

// judge says what the answer to the question means, if need be by a control.
func (d *doubts) judge(ctx context.Context, c *conn, i *inquiry, asked replied, results uint64) verdict {
	switch {
	case i.asked == nil || c.results.Load() != results:
		return verdictAlive
	case i.asked.Session == mcpbridge.Gone:
		return verdictDead
	case !i.asked.Doubt || !d.refusedAlike(i):
		return verdictUnsettled
	case !c.hasSession():
		return verdictDead
	case c.becomesKnown(ctx, asked):
		return verdictLate
	case !c.x.fresh.Load() && c.results.Load() != results:
		return verdictAlive
	}
	return c.control(ctx, asked)
}

// becomesKnown asks a session again that has answered nothing since initialize, while its
// server may not know it yet. It reports whether the session was known at last, with the
// same credentials.
func (c *conn) becomesKnown(ctx context.Context, asked replied) bool {
	if !c.x.fresh.Load() {
		return false
	}
	for range whileFresh(ctx) {
		if again := c.question(ctx); again.refusal == nil {
			c.x.fresh.Store(false)
			return reflect.DeepEqual(again.credentials, asked.credentials)
		}
	}
	return false
}

// refusedAlike reports whether the question was refused as one of the calls was.
func (d *doubts) refusedAlike(i *inquiry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range i.kinds {
		if k.method == "" || alike(i.asked, &mcpbridge.Error{Status: k.status, Code: k.code}) {
			return true
		}
	}
	return false
}

// suspect has the question asked without a call that was refused: something else makes
// the session doubtful. It does not wait.
func (c *conn) suspect() { c.doubts.inquire(c, kind{}) }

// replied is what came of a question.
type replied struct {
	refusal     *mcpbridge.Error // nil: a result
	credentials http.Header      // that it was asked with
}

// question asks whether the server knows the session: by a ping, and since a server may
// answer that before initialize, by one page of a list that it has declared.
func (c *conn) question(ctx context.Context) replied {
	ctx, cancel := context.WithTimeout(ctx, verdictLimit)
	defer cancel()
	server := c.cs.InitializeResult()
	list := listOf(server.Capabilities)
	modern := server.ProtocolVersion > protocolLegacy // which has no ping
	if modern && list == nil {
		return replied{refusal: &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "there is nothing to ask for"}}
	}
	if !modern {
		if r := c.try(ctx, func(ctx context.Context) error { return c.cs.Ping(ctx, nil) }); r.refusal != nil || list == nil {
			return r
		}
	}
	return c.try(ctx, func(ctx context.Context) error { return list(ctx, c.cs) })
}

// listOf returns what gets one page of a list that a server has declared, or nil.
func listOf(can *mcp.ServerCapabilities) func(context.Context, *mcp.ClientSession) error {
	switch {
	case can == nil:
	case can.Tools != nil:
		return func(ctx context.Context, cs *mcp.ClientSession) error {
			_, err := cs.ListTools(ctx, &mcp.ListToolsParams{})
			return err
		}
	case can.Resources != nil:
		return func(ctx context.Context, cs *mcp.ClientSession) error {
			_, err := cs.ListResources(ctx, &mcp.ListResourcesParams{})
			return err
		}
	case can.Prompts != nil:
		return func(ctx context.Context, cs *mcp.ClientSession) error {
			_, err := cs.ListPrompts(ctx, &mcp.ListPromptsParams{})
			return err
		}
	}
	return nil
}

// try makes one request of our own on the session.
func (c *conn) try(ctx context.Context, request func(context.Context) error) replied {
	life := c.cut
	if !mayRefresh(ctx) {
		life = withoutRefresh(life)
	}
	inner, ex := withExchange(life, c)
	inner, cancel := context.WithCancel(inner)
	defer context.AfterFunc(ctx, cancel)()
	ex.done = inner.Done()
	if c.tap != nil {
		defer func() { c.tap.forget(ex.id) }()
	}
	err := request(inner)
	ex.finish(err == nil, cancel)
	r := replied{credentials: ex.credentials}
	if err != nil {
		r.refusal = c.explain(ctx, ex, err)
	}
	return r
}

// control opens a second session and asks it what this one has refused. If that one
// answers, with the same credentials, and this one refuses once more, then this one is
// dead, and the second is kept to be adopted: see [Bridge.Dial]. Otherwise the refusal is
// not about the session, and the second is ended.
func (c *conn) control(ctx context.Context, asked replied) verdict {
	ctx, cancel := context.WithTimeout(ctx, c.connectLimit)
	defer cancel()
	second, e := c.at.open(ctx, attempt{DialRequest: mcpbridge.DialRequest{Key: c.key, Roots: c.roots.Load()}, credentials: c.x.out.auth.credentials, control: true})
	switch {
	case e == nil:
	case e.Status < 400 && e.Code == 0, e.Status >= 500, e.Status == http.StatusTooManyRequests, e.Status == http.StatusRequestTimeout:
		return verdictUnsettled // a server that cannot be asked has not refused
	default:
		return verdictAlive
	}
	result := verdictUnsettled
	answer := second.question(ctx)
	switch again := c.question(ctx); {
	case again.refusal == nil:
		result = verdictAlive
	case alike(answer.refusal, asked.refusal):
		result = verdictAlive
	case answer.refusal == nil && (alike(again.refusal, asked.refusal) || again.refusal.Session == mcpbridge.Gone) && reflect.DeepEqual(answer.credentials, asked.credentials):
		c.at.bridge.keep(second, c.connectLimit)
		return verdictDead
	}
	second.discard()
	return result
}

// controlUntil is control for a dial, which waits no longer than ctx lasts. What is left
// then is cleaned up behind it.
func (c *conn) controlUntil(ctx context.Context, asked replied) verdict {
	found := make(chan verdict, 1)
	go func() { found <- c.control(withoutRefresh(ctx), asked) }()
	select {
	case v := <-found:
		return v
	case <-ctx.Done():
		return verdictUnsettled
	}
}

// alike reports whether two refusals have the same status and code. A nil is none.
func alike(e, other *mcpbridge.Error) bool {
	return e != nil && other != nil && e.Status == other.Status && e.Code == other.Code
}

type withoutRefreshKey struct{}

// withoutRefresh returns a context for requests with the credentials that there are.
func withoutRefresh(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutRefreshKey{}, true)
}

func mayRefresh(ctx context.Context) bool { return ctx.Value(withoutRefreshKey{}) == nil }
