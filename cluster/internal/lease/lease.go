// Package lease keeps a member that others may have removed from the cluster from doing
// anything in its name.
//
// A member renews its lease as long as the witness of the cluster answers that it is a member. When the lease has
// run out by the clock of the member itself, after a pause of the process or a cut in the
// network, it is fenced: the wrappers of this package start no dial and no call, write nothing to a
// store but the outcome of what was begun, and close no MCP session that another member may have resumed
// from it. Calls on open sessions, the closing of such a session, and the list of those that are stored
// wait for the next renewal.
//
// A term is the time from a first renewal to [Lease.End]: in the next one, the sessions of this one may be others'. A
// connection acts in the term in which its dial began, and not in a later one.
package lease

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// ErrFenced says that the member has no lease.
var ErrFenced = errors.New("the member is fenced: the others may have removed it from the cluster")

// Lease says until when a member may act. Its methods may be called from any goroutine.
type Lease struct {
	length time.Duration
	clock  func() time.Duration
	until  atomic.Int64  // by the clock; zero: there is no lease
	ended  atomic.Uint64 // terms
	left   atomic.Bool   // it was ended without an answer of the witness

	mu     sync.Mutex
	change chan struct{} // closed at the next Renew or End
}

// Forever is the length of a lease that does not run out: nobody can remove the only host of a cluster.
const Forever = time.Duration(math.MaxInt64 / 2)

// New returns a lease for a time by a clock, such as [Clock]. It is not held before Renew.
func New(length time.Duration, clock func() time.Duration) *Lease {
	return &Lease{length: length, clock: clock, change: make(chan struct{})}
}

// Now returns the time by the clock of the lease.
func (l *Lease) Now() time.Duration { return l.clock() }

// Renew renews the lease from a time on: when the witness was asked, not when it answered.
func (l *Lease) Renew(from time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := int64(from + l.length); until > l.until.Load() {
		l.until.Store(until)
		l.changed()
	}
}

// End ends the lease until the next Renew, and the term.
func (l *Lease) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until.Store(0)
	l.ended.Add(1)
	l.changed()
}

// Abandon ends the lease of a member that leaves and that the witness does not answer: whether another member will have its
// sessions is not known.
func (l *Lease) Abandon() {
	l.left.Store(true)
	l.End()
}

// Abandoned reports whether Abandon was called.
func (l *Lease) Abandoned() bool { return l.left.Load() }

// changed wakes who waits. The caller has the mutex.
func (l *Lease) changed() {
	close(l.change)
	l.change = make(chan struct{})
}

// Held reports whether the member may act.
func (l *Lease) Held() bool {
	until := l.until.Load()
	return until != 0 && int64(l.clock()) < until
}

// Left returns for how long the member may act without a renewal, at most the length of the lease.
func (l *Lease) Left() time.Duration {
	until := l.until.Load()
	return min(max(0, time.Duration(until)-l.clock()), l.length)
}

// term is one term of a lease.
type term struct {
	lease  *Lease
	number uint64 // how many have ended before it
}

func (l *Lease) term() term { return term{l, l.ended.Load()} }

// held reports whether the member may act in the term.
func (t term) held() bool { return t.lease.Held() && !t.over() }

// over reports whether the term has ended.
func (t term) over() bool { return t.lease.ended.Load() != t.number }

// await waits until the member may act in the term. It reports false if the term or ctx ends before.
func (t term) await(ctx context.Context) bool {
	for {
		t.lease.mu.Lock()
		change := t.lease.change
		t.lease.mu.Unlock()
		switch {
		case t.held():
			return true
		case t.over():
			return false
		}
		select {
		case <-change:
		case <-ctx.Done():
			return false
		}
	}
}

// Dialer wraps a dialer: without the lease it does not dial, and its connections start no
// call. If the members share a store, which may be nil, they do not close an MCP session that another one may have resumed
// either.
func (l *Lease) Dialer(inner clusterapi.Dialer, shared mcpbridge.Store) clusterapi.Dialer {
	return &dialer{inner, l, shared}
}

type dialer struct {
	clusterapi.Dialer
	lease  *Lease
	shared mcpbridge.Store
}

// Dial dials if the lease is held. A dial that may only resume a session, to close it, waits for that. Any other has to read the
// store anew when the lease is back.
func (d *dialer) Dial(ctx context.Context, req clusterapi.DialRequest) (clusterapi.Conn, error) {
	t := d.lease.term()
	if !t.held() && (!req.Only || !t.await(ctx)) {
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: ErrFenced.Error(), Err: ErrFenced}
	}
	inner, err := d.Dialer.Dial(ctx, req)
	if err != nil {
		return nil, err
	}
	return &conn{inner, t, d.shared, req.Key}, nil
}

type conn struct {
	clusterapi.Conn
	term   term
	shared mcpbridge.Store
	key    messages.Key
}

// LeastTime is how long before its deadline an operation that waits is given up. It was certainly not sent then. If it were
// sent that late, it would most likely run, and nobody would see its result.
const LeastTime = 50 * time.Millisecond

// Do waits for the lease, and runs the operation. It gives up waiting LeastTime before the deadline. If the term is over, the
// connection counts as broken, because the session may live on another member.
func (c *conn) Do(ctx context.Context, op messages.Operation) (messages.Result, error) {
	if c.term.held() {
		return c.Conn.Do(ctx, op)
	}
	waits, cancel := ctx, context.CancelFunc(func() {})
	if deadline, has := ctx.Deadline(); has {
		waits, cancel = context.WithDeadline(ctx, deadline.Add(-LeastTime))
	}
	defer cancel()
	if c.term.await(waits) && waits.Err() == nil {
		return c.Conn.Do(ctx, op)
	}
	if c.term.over() {
		return nil, &mcpbridge.Error{Class: mcpbridge.NotSent, Session: mcpbridge.Broken, Detail: ErrFenced.Error(), Err: ErrFenced}
	}
	e := mcpbridge.AsError(errors.Join(waits.Err(), ErrFenced))
	e.Sent, e.Detail = false, ErrFenced.Error()
	return nil, e
}

// Close ends the session. If another member may have resumed it, it waits for the lease, and ends only the transport if
// that does not come.
func (c *conn) Close(ctx context.Context) error {
	if c.shared == nil || c.Resume() == nil || c.term.await(ctx) || c.isUnknown(ctx) {
		return c.Conn.Close(ctx)
	}
	err := c.Detach(ctx)
	if !c.term.over() || c.term.lease.Abandoned() { // otherwise the session is another member's
		err = cmp.Or(err, ErrFenced)
	}
	return err
}

// storeTime bounds the time in which the store says which session it has.
const storeTime = time.Second

// isUnknown reports whether the store does not have the session: it could not be saved, and no other member can resume it.
func (c *conn) isUnknown(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	record, err := c.shared.Load(ctx, c.key)
	return err == nil && (record == nil || record.SessionID != c.Resume().SessionID)
}

// Store wraps a store that the members share. It writes nothing without the lease, but for the swap of a record of which outcome holds:
// one that only says how ended what the member has begun. It lists only the keys that the member owns, because it must not close the
// sessions of others, and those of calls, which no member owns. The result is an [mcpbridge.Swapper] if inner is one.
func (l *Lease) Store(inner mcpbridge.Store, owns func(messages.Key) bool, outcome func(*mcpbridge.Record) bool) mcpbridge.Store {
	s := &store{inner, l, owns}
	if inner, ok := inner.(mcpbridge.Swapper); ok {
		return &swapper{s, inner, outcome}
	}
	return s
}

type store struct {
	mcpbridge.Store
	lease *Lease
	owns  func(messages.Key) bool
}

// swapper is the wrapper of a store that swaps records.
type swapper struct {
	*store
	inner   mcpbridge.Swapper
	outcome func(*mcpbridge.Record) bool
}

// Swap swaps the record if the lease is held, or if it is only an outcome.
func (s *swapper) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (swapped bool, err error) {
	if err := s.mayWrite(ctx); err != nil && !s.outcome(record) {
		return false, err
	}
	return s.inner.Swap(ctx, key, from, record)
}

// Save saves the record if the lease is held.
func (s *store) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	return s.Store.Save(ctx, key, record)
}

// Delete deletes the record if the lease is held.
func (s *store) Delete(ctx context.Context, key messages.Key) error {
	if err := s.mayWrite(ctx); err != nil {
		return err
	}
	return s.Store.Delete(ctx, key)
}

// mayWrite returns an error if the member must not write. Writes need no term: a session that has lost its key, or whose member
// was removed, ends the contexts of all its requests before the key is ceded, or the next term begins.
func (s *store) mayWrite(ctx context.Context) error {
	if !s.lease.Held() {
		return ErrFenced
	}
	return ctx.Err()
}

// Keys returns the keys that the member owns, and those of calls, handles and logins. It waits for the lease unless all of them are of these.
func (s *store) Keys(ctx context.Context) ([]messages.Key, error) {
	t := s.lease.term()
	keys, err := s.Store.Keys(ctx)
	keys = slices.DeleteFunc(keys, s.isOthers)
	if err == nil && slices.ContainsFunc(keys, isOwned) && !t.await(ctx) {
		return nil, ErrFenced
	}
	return slices.DeleteFunc(keys, s.isOthers), err
}

// isOthers reports whether another member owns a key.
func (s *store) isOthers(key messages.Key) bool { return isOwned(key) && !s.owns(key) }

// isOwned reports whether a member owns a key.
func isOwned(key messages.Key) bool {
	return !clusterapi.IsCallKey(key) && !clusterapi.IsHandleKey(key) && !clusterapi.IsLoginKey(key)
}
