package table

import (
	"iter"
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Table has the configured servers, the keys that have sessions, the sessions by server, scope and state, and the calls that
// they have. Each operation takes time that grows with the servers and with what it returns, and not with the other sessions.
type Table struct {
	Servers     map[string]*Server // by name
	Calls       Calls              // that sessions have
	Generations *Generations       // of keys without sessions
	Serial      uint64             // of the last session
	Waiting     int                // calls that wait, of all sessions
	Stopping    bool               // no more calls are accepted

	cfg     Config
	entries map[messages.Key]*Entry
	byPID   map[string]*Registration
	groups  map[string]*group  // by server; they stay when they are empty
	names   []string           // of groups, in order
	tenants map[string]*Tenant // that have sessions
	changes uint64             // of states
}

// Config is what a table needs to know.
type Config struct {
	Limits               *mcpbridge.Limits         // of a server that is not configured
	Tenant               func(messages.Key) string // the name of the tenant of a key, or ""; nil without tenants
	MaxSessionsPerTenant int
}

// rememberedKeys is how many keys without a session have their generation remembered.
const rememberedKeys = 1 << 16

// New returns a table without servers and sessions.
func New(cfg Config) *Table {
	return &Table{
		Servers: map[string]*Server{}, Calls: Calls{}, Generations: newGenerations(rememberedKeys),
		cfg: cfg, entries: map[messages.Key]*Entry{}, byPID: map[string]*Registration{}, groups: map[string]*group{}, tenants: map[string]*Tenant{},
	}
}

// Entry is what is known of a key while it has sessions.
type Entry struct {
	Current    *Registration   // takes the calls; nil while all sessions drain
	Draining   []*Registration // the oldest first
	Generation uint64          // of the last MCP session

	CancelledUpTo uint64 // the calls of the scope were cancelled up to this serial
}

// Predecessor returns an older session of the key that may still have an MCP session on
// the server, or nil. No other may be opened before the predecessor is closed.
func (e *Entry) Predecessor(reg *Registration) *Registration {
	if len(e.Draining) == 0 || e.Draining[0] == reg {
		return nil
	}
	return e.Draining[0]
}

// ClosesRecord reports whether an older session of the key closes the MCP session of the record in
// the store, or was to. One that was evicted before it was open leaves it to the next.
func (e *Entry) ClosesRecord() bool {
	return slices.ContainsFunc(e.Draining, func(reg *Registration) bool {
		how := reg.DrainedBy
		return !how.Leave && (reg.WasOpen || reg.Cleanup || how.Restart || !how.Evict)
	})
}

// WaitsFor reports whether a session of the key has not dialed yet, because an older one is not closed.
func (e *Entry) WaitsFor(reg *Registration) bool {
	return reg.DialedAt.IsZero() && e.Predecessor(reg) != nil
}

// Entry returns the entry of a key, or nil if it has no sessions.
func (t *Table) Entry(key messages.Key) *Entry { return t.entries[key] }

// Ensure returns the entry of a key that is about to get a session.
func (t *Table) Ensure(key messages.Key) *Entry {
	e := t.entries[key]
	if e == nil {
		e = &Entry{Generation: t.Generations.Of(key)}
		t.entries[key] = e
	}
	return e
}

// Current returns the current session of a key, or nil.
func (t *Table) Current(key messages.Key) *Registration {
	if e := t.entries[key]; e != nil {
		return e.Current
	}
	return nil
}

// Sessions returns how many sessions there are.
func (t *Table) Sessions() int { return len(t.byPID) }

// All returns the sessions, in no order.
func (t *Table) All() iter.Seq[*Registration] { return maps.Values(t.byPID) }

// Keys returns how many keys have sessions.
func (t *Table) Keys() int { return len(t.entries) }

// Remember notes the generation of a key, in its entry if there is one.
func (t *Table) Remember(key messages.Key, generation uint64) {
	if e := t.entries[key]; e != nil {
		e.Generation = generation
		return
	}
	t.Generations.set(key, generation)
}

// WithPID returns the session whose actor has a PID, or nil.
func (t *Table) WithPID(pid *actor.PID) *Registration { return t.byPID[pid.Id] }

// Add adds a session, without a state.
func (t *Table) Add(reg *Registration) {
	t.byPID[reg.PID.Id] = reg
	g := t.group(reg.Key.Server)
	t.Serial++
	reg.Serial, reg.group, reg.older = t.Serial, g, g.last
	if g.last == nil {
		g.first = reg
	} else {
		g.last.newer = reg
	}
	g.last = reg
}

// SetState notes the state of a session. A session whose state was noted is not unheard.
func (t *Table) SetState(reg *Registration, state messages.State) {
	if reg.State() != state {
		t.changes++
		reg.stateSince = t.changes
		reg.group.states.Put(&reg.stateNode, admission.Rank(slices.Index(protocol.States[:], state)), reg)
	}
	reg.Unheard = nil
	t.Recount(reg)
}

// Recount updates the number of waiting calls after the calls or the state of a session have changed.
func (t *Table) Recount(reg *Registration) {
	waiting := reg.Outstanding
	switch {
	case reg.Draining: // its calls are running or were handed back
		waiting = 0
	case reg.IsHeard():
		waiting = max(0, waiting-reg.Server.Resolved.MaxInFlight)
	}
	t.Waiting += waiting - reg.Waiting
	inFlight := reg.Outstanding - waiting
	reg.group.load.InFlight += inFlight - reg.inFlight
	reg.group.load.Waiting += waiting - reg.Waiting
	if reg.tenant != nil {
		reg.tenant.waiting += waiting - reg.Waiting
	}
	reg.Waiting, reg.inFlight = waiting, inFlight
}

// TakeOutOfUse removes a session from its key: the next call of the key gets a new session.
func (t *Table) TakeOutOfUse(reg *Registration) {
	e := t.entries[reg.Key]
	e.Current = nil
	e.Draining = append(e.Draining, reg)
}

// Remove removes a session that is closed. It returns the sessions that may have waited for that: those that drain, and
// the current one, if there are any. A cursor may still point to the session.
func (t *Table) Remove(reg *Registration) (waited []*Registration) {
	delete(t.byPID, reg.PID.Id)
	t.removeFromGroup(reg)
	reg.Outstanding = 0
	t.Recount(reg)
	t.leaveTenant(reg)
	e := t.entries[reg.Key]
	e.Draining = slices.DeleteFunc(e.Draining, func(other *Registration) bool { return other == reg })
	waited = slices.Clone(e.Draining)
	switch {
	case e.Current != nil:
		waited = append(waited, e.Current)
	case len(e.Draining) == 0:
		delete(t.entries, reg.Key)
		if e.Generation > 0 {
			t.Generations.set(reg.Key, e.Generation)
		}
	}
	return waited
}

// group returns the group of a server, which it adds if there is none.
func (t *Table) group(server string) *group {
	g := t.groups[server]
	if g == nil {
		g = &group{}
		t.groups[server] = g
		at, _ := slices.BinarySearch(t.names, server)
		t.names = slices.Insert(t.names, at, server)
	}
	return g
}

// removeFromGroup removes a session. Its field newer stays valid: a cursor may point to the session.
func (t *Table) removeFromGroup(reg *Registration) {
	g := reg.group
	if reg.older == nil {
		g.first = reg.newer
	} else {
		reg.older.newer = reg.newer
	}
	if reg.newer == nil {
		g.last = reg.older
	} else {
		reg.newer.older = reg.older
	}
	reg.older = nil
	g.states.Remove(&reg.stateNode)
}

// JoinTenant gives a session the tenant of its key, and returns that, or nil if it has none.
func (t *Table) JoinTenant(reg *Registration) *admission.Tenant {
	if t.cfg.Tenant == nil {
		return nil
	}
	name := t.cfg.Tenant(reg.Key)
	if name == "" {
		return nil
	}
	of := t.tenants[name]
	if of == nil {
		of = &Tenant{name: name}
		of.SetLimit(t.cfg.MaxSessionsPerTenant)
		t.tenants[name] = of
	}
	of.count++
	reg.tenant = of
	return &of.Tenant
}

// leaveTenant takes the tenant of a session away.
func (t *Table) leaveTenant(reg *Registration) {
	if of := reg.tenant; of != nil {
		if of.count--; of.count == 0 {
			delete(t.tenants, of.name)
		}
	}
}
