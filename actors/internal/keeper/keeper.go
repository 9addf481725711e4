// Package keeper keeps the handles that servers mint: it carries out what the book of handles decides.
package keeper

import (
	"context"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/handles"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/member"
	"github.com/mcpactor/mcpactor/actors/internal/reports"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Keeper is used by the actor of the registry only, but for the Runners that [Keeper.Interceptor] returns.
//
//	a call that mints ──▶ interceptor ──asked──▶ book ──Grant──▶ the call is sent ──answered──▶ book
//	a scope ends ──End──▶ book ──Release──▶ a call of our own, over the session of the scope ──▶ book ──Over──▶ the sessions are closed
type Keeper struct {
	With
	// Calls takes the calls of the keeper.
	Calls interface{ Accept(k *contract.Call) }
	// Pin keeps a session from being evicted, or ends that.
	Pin func(reg *table.Registration, bound bool)
	// Unneeded is told of a session that was opened for such calls only, and has none any more.
	Unneeded func(reg *table.Registration)

	book     *handles.Book
	declared map[string]handles.Kinds // by server; it is replaced, and never changed
	numbers  map[*handles.Kind]bool   // whether the handles of a kind are numbers, once that is known
	ends     map[*handles.End]func(*handles.End)
	releases map[*unanswered]bool // commands without a reply
	due      alarm.Entry[func()]
	scanDue  alarm.Entry[func()]
	store    store
	system   *actor.ActorSystem

	isReading bool     // what an earlier process has left
	later     []func() // what waits for that
}

// With is what the keeper needs.
type With struct {
	Cfg     *contract.Config
	Mailbox *mailbox.Mailbox // of the registry
	Table   *table.Table
	Member  *member.Member
	Reports *reports.Reports
	Alarm   *alarm.Alarm[func()]
	Jobs    *jobs.Jobs
}

// New returns a keeper without handles.
func New(with With) *Keeper {
	k := &Keeper{
		With: with, book: handles.New(), numbers: map[*handles.Kind]bool{}, ends: map[*handles.End]func(*handles.End){},
		releases: map[*unanswered]bool{}, store: store{cfg: with.Cfg},
	}
	k.due.What = func() { k.book.Due(time.Now()) }
	k.scanDue.What = func() { k.scan() }
	return k
}

// Start takes the kinds that the servers declare, and what an earlier process has left.
func (k *Keeper) Start(system *actor.ActorSystem) {
	k.system = system
	k.Declare()
	k.isReading = k.scan()
}

// afterReading does something when it is known what an earlier process has left: a mint would get the place of such a handle, a list has them, and who
// uses one keeps it.
func (k *Keeper) afterReading(do func()) {
	if k.isReading {
		k.later = append(k.later, do)
		return
	}
	do()
}

// read does what has waited.
func (k *Keeper) read() {
	k.isReading = false
	for _, do := range k.later {
		do()
	}
	k.later = nil
}

// Joined notes that the registry has become a member of a cluster, or that the cluster has changed.
func (k *Keeper) Joined() {
	k.Declare()
	k.scan()
}

// Declare takes the kinds that the servers declare from now on.
func (k *Keeper) Declare() {
	declared := map[string]handles.Kinds{}
	for name, srv := range k.Table.Servers {
		kinds := handles.KindsOf(&srv.Server)
		if k.Member.IsClustered() {
			kinds = kinds.Shared()
		}
		if len(kinds) > 0 {
			declared[name] = kinds
		}
	}
	for name := range k.declared {
		if declared[name] == nil {
			k.book.Declare(name, nil)
		}
	}
	for name, kinds := range declared {
		k.book.Declare(name, kinds)
	}
	k.declared = declared
	clear(k.numbers)
}

// Concerns reports whether an operation may be about a handle.
func (k *Keeper) Concerns(op messages.Operation) bool {
	_, is := op.(*messages.CallTool)
	return is && len(k.declared) > 0 && k.declared[op.Head().Key.Normal().Server] != nil
}

// Context returns a context for operations that the interceptor runs.
func (k *Keeper) Context(ctx context.Context) context.Context {
	if len(k.declared) == 0 {
		return ctx
	}
	return context.WithValue(ctx, declaredKey{}, k.declared)
}

// Interceptor returns the interceptor around the Runner that passes operations on.
func (k *Keeper) Interceptor(next actors.Runner) actors.Runner {
	return interceptor{k.Mailbox, k.store, next}.run
}

// End ends holders. then is called with what was not released when nothing of theirs is left to be released: at once, or when the time for that is
// over.
func (k *Keeper) End(m handles.Matches, immediately bool, then func(e *handles.End)) {
	k.afterReading(func() {
		now := time.Now()
		drainTime, closeTime := k.Table.Servers.Slowest()
		grace := now
		if !immediately {
			grace = now.Add(drainTime)
		}
		if e := k.book.End(m, grace, grace.Add(closeTime), now); e != nil {
			k.ends[e] = then
		} else {
			then(&handles.End{})
		}
	})
}

// Time returns how much longer a close command takes at most if there are handles.
func (k *Keeper) Time() time.Duration {
	if len(k.declared) == 0 {
		return 0
	}
	drainTime, closeTime := k.Table.Servers.Slowest()
	return drainTime + closeTime
}

// scanEvery is how often a member of a cluster looks for the handles of keys that it has got from others.
const scanEvery = 10 * time.Second

// scan takes the handles of earlier processes, and of members whose keys this one has, later. It reports whether there may be any.
func (k *Keeper) scan() bool {
	if k.Cfg.Store == nil || len(k.declared) == 0 || k.Table.Stopping {
		return false
	}
	k.Jobs.Await(func() (then func()) {
		keys := k.store.all()
		return func() { k.restore(keys) }
	})
	if k.Member.IsClustered() {
		k.Alarm.Set(&k.scanDue, time.Now().Add(scanEvery))
	}
	return true
}

// restore takes those of the records that are not known, and whose keys this one has.
func (k *Keeper) restore(keys []messages.Key) {
	keys = slices.DeleteFunc(keys, func(at messages.Key) bool { return !k.Member.Owns(recordkey.OfHandle(at)) || k.book.HasRecord(at) })
	if len(keys) == 0 || k.Table.Stopping {
		k.read()
		return
	}
	k.Jobs.Await(func() (then func()) {
		found := k.store.load(keys)
		return func() {
			now := time.Now()
			for at, r := range found {
				if k.Member.Owns(r.Key) && !k.Table.Stopping {
					k.book.Restore(at, r, now.Add(k.Cfg.HandleGrace), now)
				}
			}
			k.read()
		}
	})
}

// forget deletes a record.
func (k *Keeper) forget(at messages.Key) {
	if k.Cfg.Store == nil {
		k.book.Forgotten(at)
		return
	}
	k.Jobs.Await(func() (then func()) {
		k.store.delete(at)
		return func() { k.book.Forgotten(at) }
	})
}

// Moved forgets the handles of keys that another member of the cluster has from now on.
func (k *Keeper) Moved(matches func(messages.Key) bool) { k.book.Moved(matches, time.Now()) }

// Opened notes that a session has a connection.
func (k *Keeper) Opened(reg *table.Registration) { k.book.Opened(reg.Key, reg.Generation, time.Now()) }

// Broke notes the fault of a session. A process is that of one session, and a session may have expired for itself; else a server at a URL may have
// restarted.
func (k *Keeper) Broke(reg *table.Registration, f *actors.Fault) {
	if !f.Dialing || f.Cause.Server == mcpbridge.Absent {
		k.book.Broke(reg.Key, reg.Server.Command == "" && f.Class != mcpbridge.Expired)
	}
}

// Replaced notes that a server is removed, or may be another one from now on.
func (k *Keeper) Replaced(server string) { k.book.Broke(messages.Key{Server: server}, true) }

// Closed notes that a session is closed: its process has ended.
func (k *Keeper) Closed(reg *table.Registration) {
	if reg.Server.Command != "" && reg.WasOpen {
		k.book.Broke(reg.Key, false)
	}
}

// Alive notes that a scope does something.
func (k *Keeper) Alive(scope string) {
	k.afterReading(func() { k.book.Alive(handles.Holder{Scope: scope}) })
}

// Snapshot returns what is known of the handles of a server.
func (k *Keeper) Snapshot(server string) []messages.HandleSnapshot { return k.book.Snapshot(server) }

// List answers which handles a scope holds.
func (k *Keeper) List(cmd *messages.ListHandles, from *actor.PID) {
	scope, holder, id := messages.Key{Scope: cmd.Scope}.Normal().Scope, cmd.Holder, cmd.ID
	k.afterReading(func() {
		k.Cfg.Post.Send(from, &messages.HandleList{ID: id, Handles: append([]messages.HeldHandle{}, k.book.Of(scope, holder)...)})
	})
}

// unanswered is a command without a reply.
type unanswered struct {
	cmd  *messages.ReleaseHandles
	from *actor.PID
}

// Release releases what a scope holds, and then answers.
func (k *Keeper) Release(cmd *messages.ReleaseHandles, from *actor.PID) {
	scope := messages.Key{Scope: cmd.Scope}.Normal().Scope
	id, of := cmd.ID, &unanswered{cmd, from}
	k.releases[of] = true
	k.End(handles.Matches{Key: func(key messages.Key) bool { return key.Scope == scope }, Scope: scope, Holder: cmd.Holder}, false, func(e *handles.End) {
		delete(k.releases, of)
		k.Cfg.Post.Send(from, &messages.HandlesReleased{ID: id, Released: e.Released, Left: e.Left})
	})
}

// publish publishes what has become of a handle.
func (k *Keeper) publish(s *handles.Said) {
	stamp := messages.Stamp{Key: s.Key, Time: time.Now(), Supervisor: k.Cfg.Name}
	if reg := k.Table.Current(s.Key); reg != nil {
		stamp.Generation = reg.Generation
	}
	switch s.What {
	case handles.IsMinted:
		k.Reports.Publish(&messages.HandleMinted{Stamp: stamp, Mint: s.Mint})
	case handles.IsReleased, handles.IsGone:
		k.Reports.Publish(&messages.HandleReleased{Stamp: stamp, Mint: s.Mint, Gone: s.What == handles.IsGone})
	case handles.IsLost:
		k.Reports.Publish(&messages.HandleLost{Stamp: stamp, Mint: s.Mint, Cause: s.Reason})
	case handles.IsLeft:
		k.Reports.Publish(&messages.HandleLeft{Stamp: stamp, Mint: s.Mint, Reason: s.Reason})
	}
}

// Refuse has no mint wait any longer: the registry stops.
func (k *Keeper) Refuse() { k.book.Refuse() }

// Stop has nobody wait any longer: the registry has stopped.
func (k *Keeper) Stop() {
	k.read()
	for of := range k.releases {
		k.Cfg.Post.Send(of.from, messages.NewFailure(of.cmd, messages.CodeClosed, protocol.Stopped))
	}
	for m := range k.book.Waiting() {
		m.Ticket.(*minting).turn <- messages.CodeClosed
	}
}
