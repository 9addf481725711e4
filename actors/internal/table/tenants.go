package table

import (
	"iter"
	"maps"
	"math"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/messages"
)

// Tenant is what is known of a tenant that has sessions.
type Tenant struct {
	admission.Tenant
	name    string
	count   int // session actors
	waiting int // calls that wait, of all its sessions
}

// IsBusy reports whether as many calls of the tenant wait as the sessions of its quota may have, each of which may have
// perSession. The tenant may be nil.
func (of *Tenant) IsBusy(perSession int) bool {
	return of != nil && of.Limit <= math.MaxInt/perSession && of.waiting >= of.Limit*perSession
}

// Waiting returns how many calls of the tenant wait.
func (of *Tenant) Waiting() int { return of.waiting }

// Tenants are the tenants that have sessions.
type Tenants struct {
	NameOf      func(messages.Key) string // the tenant of a key, or ""; nil without tenants
	MaxSessions int                       // of each

	byName map[string]*Tenant
}

// Of returns the tenant of a key if it has sessions, or nil.
func (t *Tenants) Of(key messages.Key) *Tenant {
	if t.NameOf == nil || len(t.byName) == 0 {
		return nil
	}
	return t.byName[t.NameOf(key)]
}

// All returns the tenants by name, in no order.
func (t *Tenants) All() iter.Seq2[string, *Tenant] { return maps.All(t.byName) }

// join adds a session to the tenant of its key, and returns that, or nil if it has none.
func (t *Tenants) join(key messages.Key) *Tenant {
	if t.NameOf == nil {
		return nil
	}
	name := t.NameOf(key)
	if name == "" {
		return nil
	}
	of := t.byName[name]
	if of == nil {
		of = &Tenant{name: name}
		of.SetLimit(t.MaxSessions)
		t.byName[name] = of
	}
	of.count++
	return of
}

// leave removes a session from its tenant, which may be nil.
func (t *Tenants) leave(of *Tenant) {
	if of != nil {
		if of.count--; of.count == 0 {
			delete(t.byName, of.name)
		}
	}
}
