package table

import (
	"iter"
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Table has the configured servers, the keys that have sessions, the sessions by server, scope and state, and the calls that
// they have. Each operation takes time that grows with the servers and with what it returns, and not with the other sessions.
type Table struct {
	Servers     Servers
	Common      *mcpbridge.Limits // of a server that is not configured
	Tenants     Tenants
	Calls       Calls        // that sessions have
	Generations *Generations // of keys without sessions
	Waiting     int          // calls that wait, of all sessions
	Stopping    bool         // no more calls are accepted

	entries map[messages.Key]*Entry
	byPID   map[string]*Registration
	index
}

// rememberedKeys is how many keys without a session have their generation remembered.
const rememberedKeys = 1 << 16

// New returns a table without servers and sessions. The limits are those of a server that is not configured.
func New(common *mcpbridge.Limits, tenants Tenants) *Table {
	tenants.byName = map[string]*Tenant{}
	return &Table{
		Servers: Servers{}, Common: common, Tenants: tenants, Calls: Calls{}, Generations: newGenerations(rememberedKeys),
		entries: map[messages.Key]*Entry{}, byPID: map[string]*Registration{}, index: index{groups: map[string]*group{}},
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

// ClosesRecord reports whether an older session of the key closes the MCP session that the store has, or was told to. One that was
// evicted before it was open leaves that to the next session.
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

// WithPID returns the session whose actor has a PID, or nil.
func (t *Table) WithPID(pid *actor.PID) *Registration { return t.byPID[pid.Id] }

// Add adds a session, without a state.
func (t *Table) Add(reg *Registration) {
	t.byPID[reg.PID.Id] = reg
	t.add(reg)
}

// SetState notes the state of a session. A session whose state was noted is not unheard.
func (t *Table) SetState(reg *Registration, state messages.State) {
	t.put(reg, state)
	t.SetUnheard(reg, nil)
}

// SetUnheard notes that calls of a session wait although it has a connection, and why, or that they wait no longer. Those
// that run count among them.
func (t *Table) SetUnheard(reg *Registration, cause *mcpbridge.Error) {
	if !reg.Removed() {
		reg.Unheard = cause
		t.recount(reg)
	}
}

// Opened notes that a session has a connection.
func (t *Table) Opened(reg *Registration, generation uint64, info dial.Info) {
	reg.Connection = Connection{true, generation, info}
	if e := t.entries[reg.Key]; e != nil {
		e.Generation = generation
		return
	}
	t.Generations.set(reg.Key, generation)
}

// Took notes that a session gets a call.
func (t *Table) Took(reg *Registration, releases bool) {
	reg.OnlyReleases = releases && (reg.OnlyReleases || reg.Calls == 0)
	reg.Outstanding++
	reg.Calls++
	t.recount(reg)
}

// Gave notes that a session no longer has some calls. It may have been removed.
func (t *Table) Gave(reg *Registration, calls int) {
	if !reg.Removed() {
		reg.Outstanding -= calls
		t.recount(reg)
	}
}

// recount updates the number of waiting calls after the calls or the state of a session have changed.
func (t *Table) recount(reg *Registration) {
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
	t.remove(reg)
	reg.Outstanding = 0
	t.recount(reg)
	t.Tenants.leave(reg.tenant)
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

// JoinTenant gives a session the tenant of its key, and returns that, or nil if it has none.
func (t *Table) JoinTenant(reg *Registration) *admission.Tenant {
	if reg.tenant = t.Tenants.join(reg.Key); reg.tenant == nil {
		return nil
	}
	return &reg.tenant.Tenant
}
