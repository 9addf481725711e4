// Package closing keeps the close commands that have no reply yet, and the MCP sessions that could not be closed. It is told
// what happens, and says what is to be done: which leftovers are to be closed, and which command has its reply. It closes
// nothing itself.
package closing

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// MaxOfScope is how many close commands without a reply there may be of one scope, and how many that
	// concern no particular scope: a call looks at those that may concern its key.
	MaxOfScope = 1 << 10
	// maxCleanups is for how many keys of one close command leftovers are closed at once.
	maxCleanups = 16
)

// Order says what a close command closes, and how.
type Order struct {
	ID       string                  // of the reply
	Caller   *actor.PID              // nil if nobody waits for the reply
	Match    func(messages.Key) bool // the keys to close; may be called from any goroutine
	Scopes   []string                // of these keys, at most WalkStep; none if they may have any
	How      contract.Drain
	Sessions table.Cursor // those to drain
	ByScope  bool         // more sessions are drained, see [Command.ScopesDrained]
	UpTo     uint64       // the serial of the last session to drain
	Keeps    bool         // the handles of its scopes
	Stored   bool         // the store is asked for the keys that it has, see [Book.Listed]
}

// Command is a close command, or a part of a reload, a release or a stop, that waits for sessions to be closed. Only the book
// changes it.
//
//	the handles of its scopes are released ──▶ its sessions are told to drain ──▶ leftovers and records of the store are closed ──▶ the reply
//	                                                                              at most maxCleanups at once
type Command struct {
	Order
	Reply *messages.Closed
	Due   alarm.Entry[func()] // when it is answered at the latest

	replied   bool                                 // nothing is left to do
	releasing int                                  // how often handles are released before sessions are told to drain
	waiting   map[*table.Registration]struct{}     // told to drain, and not closed yet
	leftovers map[messages.Key][]contract.Leftover // to be closed, of keys not in begun
	keys      []messages.Key                       // of leftovers, and of some that are not there any more, in order
	stored    []messages.Key                       // keys with a record in the store, and not in begun
	begun     map[messages.Key]bool                // keys whose leftovers are being closed, or were, and those of sessions that could not be closed
	cleanups  int                                  // how many of waiting close leftovers

	all, wide ring.Node[*Command]
	ofScopes  []ring.Node[*Command] // for each of Scopes
}

// drains reports whether there may be sessions that were not told to drain.
func (c *Command) drains() bool { return c.Sessions.More() || c.ByScope || c.releasing > 0 }

// Releasing notes that handles are released before the sessions are told to drain.
func (c *Command) Releasing() { c.releasing++ }

// Released notes that one such release is over. left is what was not released.
func (c *Command) Released(left []messages.Left) {
	if !c.replied {
		c.releasing--
		c.Reply.Left = append(c.Reply.Left, left...)
	}
}

// Reaches reports whether the command has not told all sessions to drain, and may yet tell this one.
func (c *Command) Reaches(reg *table.Registration) bool { return c.drains() && reg.Serial <= c.UpTo }

// ScopesDrained notes that the sessions of all scopes of a command that drains by scope were told to drain.
func (c *Command) ScopesDrained() { c.ByScope = false }

// LeftHandles returns the handles that were not released.
func (c *Command) LeftHandles() []messages.Left {
	return slices.DeleteFunc(slices.Clone(c.Reply.Left), func(one messages.Left) bool { return one.Handle == "" })
}

// Replied reports whether the command has its reply.
func (c *Command) Replied() bool { return c.replied }

// Book has the close commands without a reply, and what could not be closed.
type Book struct {
	Leftovers Leftovers

	all     ring.Ring[*Command]                // the oldest first
	wide    ring.Ring[*Command]                // those that may concern any scope
	ofScope ring.Map[string, *Command]         // the others, by each of their scopes
	waits   map[*table.Registration][]*Command // those that wait for a session to be closed
}

// New returns a book that keeps a number of leftovers.
func New(maxLeftovers int) *Book {
	return &Book{
		Leftovers: Leftovers{limit: maxLeftovers}, ofScope: ring.Map[string, *Command]{}, waits: map[*table.Registration][]*Command{},
	}
}

// Begin adds a close command. It takes the leftovers of its keys. due is called if the command takes too long.
func (b *Book) Begin(o Order, due func(*Command)) *Command {
	c := &Command{
		Order: o, Reply: &messages.Closed{ID: o.ID}, leftovers: b.Leftovers.take(o.Match),
		waiting: map[*table.Registration]struct{}{}, begun: map[messages.Key]bool{}, ofScopes: make([]ring.Node[*Command], len(o.Scopes)),
	}
	c.Due.What = func() { due(c) }
	c.keys = slices.SortedFunc(maps.Keys(c.leftovers), messages.Key.Compare)
	b.all.Push(&c.all, c)
	for i, scope := range o.Scopes {
		b.ofScope.Push(scope, &c.ofScopes[i], c)
	}
	if len(o.Scopes) == 0 {
		b.wide.Push(&c.wide, c)
	}
	return c
}

// Count returns how many close commands have no reply.
func (b *Book) Count() int { return b.all.Count }

// All returns the close commands without a reply.
func (b *Book) All() iter.Seq[*Command] { return b.all.All() }

// Of returns the close commands that concern a scope, apart from those that may concern any. Those are returned for "".
func (b *Book) Of(scope string) *ring.Ring[*Command] {
	if scope == "" {
		return &b.wide
	}
	return b.ofScope.Of(scope)
}

// OfKey returns the close commands without a reply that are about a key.
func (b *Book) OfKey(key messages.Key) iter.Seq[*Command] {
	return func(yield func(*Command) bool) {
		for _, of := range []*ring.Ring[*Command]{&b.wide, b.Of(key.Scope)} {
			for c := range of.All() {
				if !c.replied && c.Match(key) && !yield(c) {
					return
				}
			}
		}
	}
}

// Wait notes that a session is told to drain for a close command. It reports whether it was not noted yet.
func (b *Book) Wait(c *Command, reg *table.Registration) bool {
	if _, waits := c.waiting[reg]; waits || c.replied {
		return false
	}
	c.waiting[reg] = struct{}{}
	b.waits[reg] = append(b.waits[reg], c)
	if reg.Cleanup {
		c.cleanups++
	}
	return true
}

// ForRecord returns a command that waits for the session and does not leave what the store has, or nil.
func (b *Book) ForRecord(reg *table.Registration) *Command {
	for _, c := range b.waits[reg] {
		if !c.replied && !c.How.Leave {
			return c
		}
	}
	return nil
}

// Closed notes the end of a session actor: how many MCP sessions it has closed, and which it has left. It returns the commands
// that have waited for it.
func (b *Book) Closed(reg *table.Registration, sessions int, left []contract.Leftover) (waited []*Command) {
	for _, c := range b.waits[reg] {
		if c.replied {
			continue
		}
		delete(c.waiting, reg)
		if reg.Cleanup {
			c.cleanups--
		}
		c.Reply.Sessions += sessions
		if reg.WasOpen && len(left) > 0 {
			c.begun[reg.Key] = true // what the store has of the key is this session
		}
		for _, one := range left {
			c.left(reg.Key, one.Reason)
		}
		waited = append(waited, c)
	}
	delete(b.waits, reg)
	return waited
}

// Listed notes which keys the store has.
func (b *Book) Listed(c *Command, keys []messages.Key) {
	if !c.replied {
		c.Stored, c.stored = false, keys
	}
}

// left notes what the command leaves open.
func (c *Command) left(key messages.Key, reason string) {
	c.Reply.Left = append(c.Reply.Left, messages.Left{Key: key, Reason: reason})
}

// Next returns the next key for which a close command may find something left open, and whether the command is to close that.
// more is false if there is no such key, or none yet: first, all sessions are told to drain. has reports whether a key has
// sessions: these close what the store has of it.
func (b *Book) Next(c *Command, has func(messages.Key) bool) (key messages.Key, closes, more bool) {
	if c.replied || c.drains() || c.cleanups >= maxCleanups {
		return key, false, false
	}
	if key, more = c.nextKey(); !more {
		return key, false, false
	}
	if len(c.stored) > 0 && c.stored[0] == key {
		c.stored = c.stored[1:]
	}
	_, left := c.leftovers[key]
	return key, left || !has(key), true
}

// nextKey returns the next key that may have leftovers, or a record in the store.
func (c *Command) nextKey() (key messages.Key, more bool) {
	for ; len(c.keys) > 0; c.keys = c.keys[1:] {
		if _, left := c.leftovers[c.keys[0]]; left {
			return c.keys[0], true
		}
	}
	if len(c.stored) > 0 {
		return c.stored[0], true
	}
	return key, false
}

// Concerns reports whether a command has something of a key to close before the next session of the key opens. has says whether
// the key has sessions.
func (c *Command) Concerns(key messages.Key, has bool) bool {
	_, left := c.leftovers[key]
	return left || !has && (c.Stored || len(c.stored) > 0)
}

// CleanUp returns the leftovers of a key that are to be closed for a close command now. ok is false if there is nothing to be
// done, and leave is true if the MCP session in the store is to be left. If the key is not ours, the member of the cluster that owns it
// may have resumed them from the store: they are kept, unless none of them can be resumed.
func (b *Book) CleanUp(c *Command, key messages.Key, isOurs bool) (left []contract.Leftover, leave, ok bool) {
	left = c.leftovers[key]
	foreign := !c.How.Moves && !isOurs
	if foreign && (len(left) == 0 || slices.ContainsFunc(left, contract.Leftover.IsResumable)) {
		b.keep(c, key)
		return nil, false, false
	}
	delete(c.leftovers, key)
	if len(left) == 0 && c.begun[key] {
		return nil, false, false
	}
	c.begun[key] = true
	return left, c.How.Leave || foreign, true
}

// keep keeps the leftovers of a key for the next close command.
func (b *Book) keep(c *Command, key messages.Key) {
	if left := c.leftovers[key]; len(left) > 0 {
		delete(c.leftovers, key)
		b.Leftovers.Add(key, left)
		c.left(key, left[0].Reason)
	}
}

// End ends a close command that waits for nothing any more. It reports whether it has ended now.
func (b *Book) End(c *Command) bool {
	if c.replied || c.Stored || c.drains() || len(c.waiting)+len(c.leftovers)+len(c.stored) > 0 {
		return false
	}
	c.replied = true
	b.all.Remove(&c.all)
	b.wide.Remove(&c.wide)
	for i, scope := range c.Scopes {
		b.ofScope.Remove(scope, &c.ofScopes[i])
	}
	slices.SortFunc(c.Reply.Left, func(a, b messages.Left) int {
		return cmp.Or(a.Key.Compare(b.Key), cmp.Compare(a.Handle, b.Handle), cmp.Compare(a.Reason, b.Reason))
	})
	return true
}

// GiveUp makes a close command stop waiting, so that End ends it. Leftovers whose closing has not begun are kept
// for the next command. It returns the sessions that are still closing.
func (b *Book) GiveUp(c *Command) (closing []*table.Registration) {
	for reg := range c.waiting {
		closing = append(closing, reg)
		c.left(reg.Key, "it is still closing")
	}
	for _, key := range c.keys {
		b.keep(c, key)
	}
	for _, key := range c.stored {
		if !c.begun[key] {
			c.left(key, "there was no time to close the session from before the restart of this process")
		}
	}
	c.Sessions, c.ByScope, c.Stored, c.releasing = table.Cursor{}, false, false, 0
	c.waiting, c.leftovers, c.stored = nil, nil, nil
	return closing
}

// Left returns the leftovers of a key, also those of close commands.
func (b *Book) Left(key messages.Key) []contract.Leftover {
	all := slices.Clone(b.Leftovers.keys[key])
	for c := range b.all.All() {
		all = append(all, c.leftovers[key]...)
	}
	return all
}
