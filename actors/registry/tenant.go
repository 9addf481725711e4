package registry

import (
	"math"
	"runtime/debug"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// tenant is what the registry knows of a tenant that has sessions. Tenants are what
// [contract.Config.Tenant] makes of keys.
type tenant struct {
	admission.Tenant
	name    string
	count   int // session actors
	waiting int // calls that wait, of all its sessions
}

// tenantName returns the name of the tenant of a key, or "". It recovers from a panic of
// the function of the user: all keys for which it panics are one tenant.
func (r *registry) tenantName(key messages.Key) (name string) {
	if r.cfg.Tenant == nil {
		return ""
	}
	defer func() {
		if reason := recover(); reason != nil {
			contract.About(r.cfg.Logger.Error(), key, 0).
				Interface("reason", reason).Bytes("stack", debug.Stack()).Msg("function Tenant panicked")
			name = "?"
		}
	}()
	return r.cfg.Tenant(key)
}

// joinTenant gives a session the tenant of its key, if there is one.
func (r *registry) joinTenant(reg *registration) {
	name := r.tenantName(reg.key)
	if name == "" {
		return
	}
	t := r.tenants[name]
	if t == nil {
		t = &tenant{name: name}
		t.SetLimit(r.cfg.MaxSessionsPerTenant)
		r.tenants[name] = t
	}
	t.count++
	reg.tenant = t
}

// leaveTenant takes the tenant of a session away.
func (r *registry) leaveTenant(reg *registration) {
	t := reg.tenant
	if t == nil {
		return
	}
	if t.count--; t.count == 0 {
		delete(r.tenants, t.name)
	}
}

// tenantOf returns the tenant of a key if it has sessions, or nil. reg is the session of
// the key, or nil.
func (r *registry) tenantOf(key messages.Key, reg *registration) *tenant {
	switch {
	case reg != nil:
		return reg.tenant
	case r.cfg.Tenant == nil || len(r.tenants) == 0:
		return nil
	}
	return r.tenants[r.tenantName(key)]
}

// mostWaiting returns how many calls of the tenant may wait: as many as the sessions of its
// quota may have, each of which may have perSession.
func (t *tenant) mostWaiting(perSession int) int {
	if t.Limit > math.MaxInt/perSession {
		return math.MaxInt
	}
	return t.Limit * perSession
}

// shared returns what the gate knows of a tenant, or nil.
func (t *tenant) shared() *admission.Tenant {
	if t == nil {
		return nil
	}
	return &t.Tenant
}
