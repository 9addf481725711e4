package actors

import (
	"context"
	"math/rand/v2"
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
	serial   uint64 // in the order in which operations came

	runs       int              // how often it was given to a connection
	unread     int              // how many of those its server has said that it did not process, and went on
	generation uint64           // of the connection it was last given to
	lost       *mcpbridge.Error // what became of the first run, if it may have run
	lostIn     uint64           // the generation of that
	ask        bool             // it may run again only if its tool turns out to be safe
	answered   bool             // it got its reply, though it may run still

	in         *queue // that it stands in, or nil
	prev, next *call  // its neighbors there

	until until // what it runs under, once it has run

	// While it runs:
	conn   mcpbridge.Conn
	cancel context.CancelFunc
}

// until is a context that tells a deadline, and does not end by itself: at the
// deadline the session cancels what is derived from it, so that there is no timer for
// each call.
type until struct {
	context.Context
	deadline time.Time
}

// Deadline returns the deadline.
func (u *until) Deadline() (time.Time, bool) { return u.deadline, true }

// failure returns the reply for a call that did not go well.
func (k *call) failure(code messages.Code, detail string) *messages.Failure {
	f := messages.NewFailure(k.op, code, detail)
	f.Key, f.Generation, f.Replayed, f.MayHaveRun = k.key, k.generation, k.runs > 1, k.lost != nil
	return f
}

// explain returns the reply for what the bridge said.
func (k *call) explain(e *mcpbridge.Error) *messages.Failure {
	f := k.failure(e.Class.Code(), e.ForCaller())
	f.MayHaveRun = f.MayHaveRun || e.MayHaveRun()
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

// maxUnread bounds how many runs of a call do not count because its server has said that
// it did not process them.
const maxUnread = 6

// noteUnread notes a run that the server has not processed, though the session goes on. An
// HTTP/2 server says so of what comes while it has too many streams, or is about to close
// the connection, and may do so again on the next connection.
func (k *call) noteUnread(e *mcpbridge.Error) {
	if e.Class == mcpbridge.NotSent && e.Session == mcpbridge.Alive && k.unread < maxUnread {
		k.unread++
	}
}

// pause returns how long to wait before the next run: a server that is called on
// another connection may be ready at once, and one with too many streams in a moment.
func (k *call) pause() time.Duration {
	if k.unread < 2 {
		return 0
	}
	longest := 10 * time.Millisecond << k.unread
	return longest/2 + rand.N(longest/2)
}

// mayRepeat says whether a call that did not succeed may be given to the next
// connection: at most once, and only when that is safe. ask is true when it
// depends on the tool's annotations, which are not known.
func (k *call) mayRepeat(e *mcpbridge.Error) (yes, ask bool) {
	replay := k.op.Head().Replay
	switch {
	case k.runs-k.unread > 1 || replay == messages.ReplayNever:
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
	return k == m.call || m.call == nil && k.op.RequestID() == m.id && k.serial <= m.upTo
}

// tool returns the name of the tool that is called, or "".
func (k *call) tool() string {
	if op, ok := k.op.(*messages.CallTool); ok {
		return op.Params.Name
	}
	return ""
}

// subscription returns the URI that the call subscribes to, or no more. Such calls
// for one URI run one after the other: the last one decides.
func (k *call) subscription() (uri string, is bool) {
	switch op := k.op.(type) {
	case *messages.Subscribe:
		return op.URI, true
	case *messages.Unsubscribe:
		return op.URI, true
	}
	return "", false
}

// performAfter is perform after a pause, which ends with ctx.
func (k *call) performAfter(ctx context.Context, pause time.Duration, conn mcpbridge.Conn) (messages.Result, error) {
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return k.perform(ctx, conn)
}

// perform runs the call on conn. It may block.
func (k *call) perform(ctx context.Context, conn mcpbridge.Conn) (result messages.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicked(r)
		}
	}()
	if _, ok := k.op.(*messages.Open); ok {
		info := conn.Info()
		return &messages.SessionInfo{Server: info.Server, Stateless: info.Stateless}, nil
	}
	return conn.Do(ctx, k.op)
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
	held       held            // what the next session is told again
	served     bool            // there has been a connection
	stateless  bool            // the last one kept nothing on the server
	parked     queue           // accepted and not running
	running    queue           // on conn or on old
	turns      map[string]bool // URIs whose subscription is being changed by a call that is running
	listings   int             // tools/list requests of our own that are running

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

	openedAt time.Time // when there was a connection first, of the last session
	reopened bool      // that was for nobody, and nobody has called since

	refused      *mcpbridge.Error // why the credentials were refused, or nil
	refusedUntil time.Time        // until then they have to be others

	cause    *Fault    // of the last restart, nil if there was none
	failedAt time.Time // when that was
	lostAt   time.Time // when there was a connection last

	timer  *time.Timer // sends woke; nil when none is on its way
	wakeAt time.Time   // when timer fires

	fresh  bool    // what is remembered of a session is not to be resumed: it is being ended, or was left
	ending *ending // what it was spawned to end, or nil

	draining *drain   // the last one, nil before
	settled  *settled // one message for all calls: it is immutable
	after    afterlife
}

// recall returns what is remembered of the session elsewhere.
func (l *life) recall() recall { return recall{l.cfg, l.key} }

// begin notes that a call is running.
func (l *life) begin(k *call) {
	l.running.push(k)
	if uri, is := k.subscription(); is {
		if l.turns == nil {
			l.turns = map[string]bool{}
		}
		l.turns[uri] = true
	}
}

// forget drops a call that does not run any more.
func (l *life) forget(k *call) {
	if k.in != &l.running {
		return
	}
	l.running.remove(k)
	if uri, is := k.subscription(); is {
		delete(l.turns, uri)
	}
}

// owed returns the calls whose callers wait for a reply.
func (l *life) owed() []*call {
	owed := slices.Collect(l.parked.all())
	for k := range l.running.all() {
		if !k.answered {
			owed = append(owed, k)
		}
	}
	return owed
}
