package registry

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
)

// onAddressFound moves a session to the place of the address that its dial has found.
//
// The sessions of a server with PerKey are dialed at several places: a place is a [server] with
// the configuration of its base, and with an address that PerKey led to. A session begins at
// the base, which has no address. Each dial finds the address of its key, and asks for it
// before it sends anything:
//
//	grant ──▶ PerKey returns ──addressFound──▶ the session moves to that place
//	                                             ├─ up, or may be probed ──▶ the dial continues
//	                                             └─ else ──▶ the dial ends, and the session is queued there
func (r *registry) onAddressFound(c actor.Context, msg *contract.AddressFound) {
	reg, now := registrationOf(msg.Of), time.Now()
	if !reg.dialing {
		r.cfg.Post.Send(c.Sender(), &contract.AddressAllowed{Is: false})
		return
	}
	reg.addressed = true
	if reg.server.address == msg.Address {
		r.cfg.Post.Send(c.Sender(), &contract.AddressAllowed{Is: true})
		return
	}
	left, to := reg.server, r.place(reg.server, msg.Address)
	ep := to.endpoint
	allowed := to.dialing < to.limits.MaxDials && (!ep.Down || ep.AllowsProbe(now))
	if reg.probing { // the probe says nothing about the server of that place
		left.endpoint.Next = now
	}
	left.endpoint.EndProbe(reg)
	reg.probing = allowed && ep.Down
	switch {
	case reg.probing:
		ep.BeginProbe(reg, now)
		fallthrough
	case allowed:
		r.returnPermit(left)
		to.dialing++
	default:
		r.returnPermits(reg)
	}
	reg.server = to
	to.users++
	left.leave()
	r.cfg.Post.Send(c.Sender(), &contract.AddressAllowed{Is: allowed})
	r.grantDials(c)
}

// place returns the place with an address, of the server that a session is at.
func (r *registry) place(at *server, address string) *server {
	base := at.base
	if known := base.keyed[address]; known != nil {
		return known
	}
	s := &server{
		Server: base.Server, address: address, base: base, endpoint: r.endpointAt(address),
		own: base.own, limits: base.limits, sessions: base.sessions,
	}
	if base.keyed == nil {
		base.keyed = map[string]*server{}
	}
	base.keyed[address] = s
	s.endpoint.keyed = append(s.endpoint.keyed, s)
	s.noteHealth()
	return s
}

// endpointAt returns what is known of the endpoint with an address.
func (r *registry) endpointAt(address string) *endpoint {
	for _, srv := range r.servers {
		if srv.address == address {
			return srv.endpoint
		}
		if place := srv.keyed[address]; place != nil {
			return place.endpoint
		}
	}
	return new(endpoint)
}

// leave notes that a session has left a place. A place without sessions is forgotten.
func (srv *server) leave() {
	if srv.base == srv {
		return
	}
	if srv.users--; srv.users == 0 {
		delete(srv.base.keyed, srv.address)
		srv.base.health.Remove(&srv.healthNode)
		srv.endpoint.keyed = slices.DeleteFunc(srv.endpoint.keyed, func(s *server) bool { return s == srv })
	}
}
