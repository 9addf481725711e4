package actors

import (
	"context"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// call is an operation that was accepted, and owes its caller one reply. It
// belongs to the registry until it is forwarded, then to the session.
type call struct {
	op       messages.Operation
	key      messages.Key
	caller   *actor.PID // nil: nobody wants the reply
	deadline time.Time

	runs       int              // how often it was given to a connection
	generation uint64           // of the connection it was last given to
	lost       *mcpbridge.Error // what became of the first run, if it may have run
	lostIn     uint64           // the generation of that
	ask        bool             // it may run again only if its tool turns out to be safe
	answered   bool             // it got its reply, though it may run still

	// While it runs:
	conn   mcpbridge.Conn
	cancel context.CancelFunc
}

// failure returns the reply for a call that did not go well.
func (k *call) failure(code messages.Code, detail string) *messages.Failure {
	f := messages.NewFailure(k.op, code, detail)
	f.Key, f.Generation, f.Replayed, f.MayHaveRun = k.key, k.generation, k.runs > 1, k.lost != nil
	return f
}

// explain returns the reply for what the bridge said.
func (k *call) explain(e *mcpbridge.Error) *messages.Failure {
	f := k.failure(e.Class.Code(), e.ForCaller())
	switch e.Class {
	case mcpbridge.Lost:
		f.MayHaveRun = true
	case mcpbridge.Internal, mcpbridge.Protocol, mcpbridge.ServerError: // it may have failed after it had run
		f.MayHaveRun = f.MayHaveRun || e.Sent
	}
	f.RetryAfter, f.Cause = e.RetryAfter, e
	return f
}

// giveUp returns the reply for a call that gets no connection, because of e.
func (k *call) giveUp(e *mcpbridge.Error) *messages.Failure {
	if k.lost != nil {
		return k.explain(k.lost)
	}
	f := k.explain(e)
	f.MayHaveRun = false
	switch e.Class {
	case mcpbridge.Lost, mcpbridge.Expired, mcpbridge.Internal: // that was another call, and what was said of it
		f.Code, f.Detail = messages.CodeUnavailable, e.Detail
	}
	return f
}

// sign fills in what every result carries.
func (k *call) sign(result messages.Result) messages.Result {
	r := result.GetReceipt()
	r.Key, r.ID, r.Generation, r.Replayed = k.key, k.op.RequestID(), k.generation, k.runs > 1
	return result
}

// mayRepeat says whether a call that did not succeed may be given to the next
// connection: at most once, and only when that is safe. ask is true when it
// depends on the tool's annotations, which are not known.
func (k *call) mayRepeat(e *mcpbridge.Error) (yes, ask bool) {
	replay := k.op.Head().Replay
	switch {
	case k.runs > 1 || replay == messages.ReplayNever:
		return false, false
	case e.Class == mcpbridge.Expired || e.Class == mcpbridge.NotSent:
		return true, false
	case e.Class != mcpbridge.Lost:
		return false, false
	case replay == messages.ReplayAlways || mcpbridge.ReadOnly(k.op):
		return true, false
	}
	safe, known := k.conn.Hint(k.tool())
	return safe || !known, !known
}

// means reports whether a call is to be given up.
func (m *cancelled) means(k *call) bool {
	return k == m.call || m.call == nil && k.op.RequestID() == m.id
}

// tool returns the name of the tool that is called, or "".
func (k *call) tool() string {
	if op, ok := k.op.(*messages.CallTool); ok {
		return op.Params.Name
	}
	return ""
}

// perform runs the call on conn. It may block. declined is true when the call
// was not given to conn, because it may have run before and is not safe.
func (k *call) perform(ctx context.Context, conn mcpbridge.Conn) (result messages.Result, declined bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicked(r)
		}
	}()
	if k.ask {
		lost := *k.lost
		lost.Session = mcpbridge.Alive // that was the one before
		if _, err := conn.Do(ctx, &messages.ListTools{}); err != nil {
			lost.Session = mcpbridge.AsError(err).Session
			return nil, true, &lost
		}
		if safe, _ := conn.Hint(k.tool()); !safe {
			return nil, true, &lost
		}
	}
	if _, ok := k.op.(*messages.Open); ok {
		info := conn.Info()
		return &messages.SessionInfo{Server: info.Server, Stateless: info.Stateless}, false, nil
	}
	result, err = conn.Do(ctx, k.op)
	return result, false, err
}

// life is what outlives a restart of a session: the calls it owes a reply, its
// generation, its connections, and why it failed last.
type life struct {
	cfg      *Config
	key      messages.Key
	server   *mcpbridge.Server // read-only
	registry *actor.PID
	of       *child // the registry's

	generation uint64
	held       held    // what the next session is told again
	served     bool    // there has been a connection
	stateless  bool    // the last one kept nothing on the server
	parked     []*call // accepted and not running, in order
	running    []*call // on conn or on old

	// conn is the connection calls run on. nil while there is none.
	conn mcpbridge.Conn
	// old was conn before a fault. It is let go before there is another.
	old mcpbridge.Conn
	// detached was old. The server may know its session still: it is what the
	// next dial resumes, and what has to be closed if there is none.
	detached mcpbridge.Conn

	// abort ends the dial that is running; its end comes as dialed. nil when
	// there is none.
	abort context.CancelFunc

	cause    *Fault    // of the last restart, nil if there was none
	failedAt time.Time // when that was
	lostAt   time.Time // when there was a connection last

	timer  *time.Timer // sends woke; nil when none is on its way
	wakeAt time.Time   // when timer fires

	draining *drain   // the last one, nil before
	settled  *settled // one message for all calls: it is immutable
	after    afterlife
}

// recall returns what is remembered of the session elsewhere.
func (l *life) recall() recall { return recall{l.cfg, l.key} }

// forget drops a call that does not run any more.
func (l *life) forget(k *call) {
	l.running = slices.DeleteFunc(l.running, func(running *call) bool { return running == k })
}

// owed returns the calls whose callers wait for a reply.
func (l *life) owed() []*call {
	owed := slices.Clone(l.parked)
	for _, k := range l.running {
		if !k.answered {
			owed = append(owed, k)
		}
	}
	return owed
}
