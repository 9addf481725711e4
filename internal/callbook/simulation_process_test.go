package callbook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// process is one that asks for calls. It may die: then nothing of it goes on.
type process struct {
	s    *simulation
	name string
	book *Book
	dead atomic.Bool
}

func (p *process) String() string { return p.name }

// isDead reports whether the process has died. The world, which is nil, does not die.
func (p *process) isDead() bool { return p != nil && p.dead.Load() }

// works reports whether somebody in the process works on a call.
func (p *process) works() bool {
	p.book.mu.Lock()
	defer p.book.mu.Unlock()
	return len(p.book.entries) > 0
}

// grace is how long after its deadline a call may take to return.
const grace = time.Second

// spawn starts a process.
func (s *simulation) spawn() {
	s.spawned++
	p := &process{s: s, name: fmt.Sprint("p", s.spawned)}
	cfg := Config{Store: s.store(p), Grace: grace, Warn: func(string, error) {}}
	if s.cfg.keeps {
		cfg.KeepResults, cfg.MaxResult = time.Hour, 1<<20
	}
	if s.cfg.resolves {
		cfg.Resolve = func(ctx context.Context, op *messages.CallTool) (messages.Resolution, *mcp.CallToolResult, error) {
			return s.resolve(ctx, p, op)
		}
	}
	p.book = New(cfg)
	s.books = append(s.books, p.book)
	s.processes = append(s.processes, p)
}

// The things that an asker does.
const (
	asks     = "asks for"
	proposes = "proposes"
	allows   = "allows"
	denies   = "denies"
	cancels  = "cancels"
)

// asker is somebody who asks for a call, proposes or answers it.
type asker struct {
	s      *simulation
	in     *process
	name   string
	does   string
	op     *messages.CallTool
	key    messages.Key
	of     string
	cancel context.CancelFunc
	began  time.Time
	until  time.Time // when its context ends
	over   bool
	got    string // the kind of its reply
}

// callOf returns the message of a call.
func callOf(id string, variant int) *messages.CallTool {
	return &messages.CallTool{
		Header: messages.Header{ID: id, Key: messages.Key{Server: "s", Scope: "c"}},
		Params: &mcp.CallToolParams{Name: "t", Arguments: variant}, Durable: true,
	}
}

// nameOfCall returns the name of a call, by which the server knows it.
func nameOfCall(op *messages.CallTool) string { return fmt.Sprintf("%s%v", op.ID, op.Params.Arguments) }

// ask starts an asker.
func (s *simulation) ask(p *process, does, id string, variant int, timeout time.Duration) *asker {
	s.asked++
	op := callOf(id, variant)
	a := &asker{
		s: s, in: p, name: fmt.Sprint("a", s.asked), does: does, op: op, key: KeyOf(op.Key.Scope, id), of: nameOfCall(op),
		began: time.Now(), until: time.Now().Add(timeout),
	}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), nameKey{}, a.name), timeout)
	a.cancel = cancel
	s.askers = append(s.askers, a)
	s.Logf("%s %s %s %s, within %v", p, a.name, does, a.of, timeout)
	go a.run(ctx)
	return a
}

// run does what the asker does, and checks the reply.
func (a *asker) run(ctx context.Context) {
	defer a.cancel()
	reply := map[string]func(context.Context) func(){asks: a.ask, proposes: a.propose, allows: a.allow, denies: a.deny, cancels: a.drop}[a.does](ctx)
	at := time.Now()
	if !a.s.wait(a.in, time.Second, fmt.Sprintf("%s %s has its reply", a.in, a.name)) {
		return
	}
	a.s.check(!a.over, "a second reply")
	a.over = true
	a.s.check(!at.After(a.until.Add(overtime)), "a reply is late")
	reply()
}

// overtime is how long after the end of its context an asker may have to wait: for requests to the store of 2 seconds each, and for
// a resolver that ignores the end of its own context.
const overtime = 30 * time.Second

// ask asks for a call.
func (a *asker) ask(ctx context.Context) func() {
	result, err := a.in.book.Do(ctx, a.op, a.send)
	return func() { a.s.replied(a, result, err) }
}

// change changes the record as somebody who answers does.
func (a *asker) change(ctx context.Context, next func(Record) Record) (known, changed bool, err error) {
	r, err := a.in.book.Find(ctx, a.key)
	if err != nil || r == nil || string(r.Proposal) != fmt.Sprintf("%q", a.of) {
		return false, false, err
	}
	_, changed, err = a.in.book.Change(ctx, a.key, func(r Record) (Record, bool) { return next(r), r.State == Proposed })
	return err == nil, changed, err
}

// allow answers that a call may be sent.
func (a *asker) allow(ctx context.Context) func() {
	known, changed, err := a.change(ctx, Record.Allow)
	if err != nil || !known {
		return func() {}
	}
	ask := a.ask(ctx)
	return func() {
		if !changed {
			a.s.Crossed("a second answer")
		}
		ask()
	}
}

// deny answers that a call may not be sent.
func (a *asker) deny(ctx context.Context) func() {
	refusal := messages.NewFailure(a.op, messages.CodeRefused, "denied")
	known, changed, err := a.change(ctx, func(r Record) Record { return r.Fail(refusal) })
	if err != nil || !known {
		return func() {}
	}
	ask := a.ask(ctx)
	return func() {
		if changed {
			a.s.neverRuns(a.of, "denied by "+a.name)
		}
		ask()
	}
}

// propose proposes a call.
func (a *asker) propose(ctx context.Context) func() {
	raw, _ := json.Marshal(a.of)
	_, _, _ = a.in.book.Propose(ctx, a.key, func(r Record) (Record, bool) {
		next := Propose(a.op, raw, time.Now(), time.Now().Add(time.Hour))
		return next, r.State == None || r.State == Proposed && string(r.Proposal) == string(raw)
	})
	return func() {}
}

// drop cancels a call.
func (a *asker) drop(ctx context.Context) func() {
	r, err := a.in.book.Find(ctx, a.key)
	if err != nil || r == nil || r.Call != DigestOf(a.op) || len(r.Proposal) == 0 {
		return func() {}
	}
	now, changed, err := a.in.book.Change(ctx, a.key, func(r Record) (Record, bool) {
		return r.Fail(messages.NewFailure(a.op, messages.CodeCancelled, "")), r.State == Proposed || r.State == Allowed
	})
	return func() {
		if err == nil && (changed || now.State == Failed) {
			a.s.neverRuns(a.of, "cancelled by "+a.name)
		}
	}
}

// send sends a call as a session does: a run may go on after its caller has gone.
func (a *asker) send(ctx context.Context, e *Entry) (messages.Result, error) {
	token := e.Mark(a.op).Params.Meta[TokenKey].(string)
	if a.s.wait(a.in, time.Second, a.name+" sends"); a.s.isOver(a.in) || a.s.fault(2, 6) == 1 {
		return nil, a.failure(outcome{why: "no session"})
	}
	task, isTask, later := "", false, false
	for attempt := 1; ; attempt++ {
		done := make(chan outcome, 1)
		go a.runOn(ctx, e, token, task, later, done)
		o := a.s.await(ctx, done)
		if o.asks { // the questions need no run
			later = true
			if a.s.wait(a.in, 5*time.Second, a.name+" has the answers"); !a.s.isOver(a.in) && ctx.Err() == nil {
				continue
			}
			o.may, o.why = true, "no next round"
		}
		if a.s.wait(a.in, time.Second/2, a.name+" hears of its run"); o.result != nil {
			return o.result, nil
		}
		if task, isTask = o.task, isTask || o.isTask; !o.may && attempt < 3 && ctx.Err() == nil {
			continue
		}
		o.may = o.may || isTask || later
		return nil, a.failure(o)
	}
}

// failure returns an outcome as a failure.
func (a *asker) failure(o outcome) *messages.Failure {
	f := messages.NewFailure(a.op, messages.CodeUnavailable, o.why)
	if o.may {
		f.Code = messages.CodeLost
	}
	f.MayHaveRun = o.may
	return f
}

// runOn runs a call on a connection, as contract.Call does.
func (a *asker) runOn(ctx context.Context, e *Entry, token, task string, later bool, done chan<- outcome) {
	o := outcome{why: "gone"}
	defer func() { done <- o }()
	if !a.s.wait(a.in, time.Second, a.name+" runs") || !e.Hold() {
		return
	}
	defer e.Release()
	if task == "" {
		if task = e.Task(); task != "" {
			a.s.Crossed("a task is followed by another asker")
		}
	}
	if task == "" && !later && e.Round() != nil {
		a.s.Crossed("the next round is sent by another asker")
		o = outcome{asks: true}
		return
	}
	notRun := e.NotRun
	if later {
		notRun = e.RoundNotSent
	}
	if task == "" {
		if err := e.Begin(ctx); err != nil {
			o.why = err.Error()
			return
		}
		if a.s.rarely(3) && !a.s.wait(a.in, 5*time.Second, a.name+" is about to send") || a.s.isOver(a.in) || ctx.Err() != nil {
			o.why = "not sent"
			notRun(ctx)
			return
		}
		if o = a.s.call(ctx, a.of, token, later); o.asks {
			e.Asks(ctx, []byte(`{"requestState":"s"}`))
			return
		}
		if task = o.task; task != "" {
			e.Became(ctx, task)
		}
	}
	if task != "" {
		o = a.follow(ctx, task)
	}
	if !a.s.wait(a.in, 4*time.Second, fmt.Sprintf("%s gets: %s", a.name, o.why)) {
		return
	}
	switch {
	case o.result != nil:
		a.s.got[a.of] = true
		e.Ran(ctx, o.result)
	case !o.may:
		notRun(ctx)
	case o.gone:
		e.Lost(ctx, a.failure(o))
	}
}

// follow asks for a task until it is over.
func (a *asker) follow(ctx context.Context, task string) outcome {
	for {
		o := a.s.task(ctx, a.name, a.of, task)
		if o.task == "" {
			o.task, o.isTask = task, true
			return o
		}
		select {
		case <-time.After(700 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// isFailure returns an error as a failure.
func isFailure(err error) *messages.Failure {
	f, _ := errors.AsType[*messages.Failure](err)
	return f
}
