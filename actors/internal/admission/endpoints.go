package admission

import "slices"

// endpoints are all endpoints that have places, by their addresses.
type endpoints map[string]*Endpoint

// newPlace returns a place of a server. Without a known address, it shares its endpoint with no other place.
func (all endpoints) newPlace(srv *Server, address string) *Place {
	ep := all[address]
	if ep == nil {
		ep = new(Endpoint)
		ep.wake.What = ep
		if address != "" {
			all[address] = ep
		}
	}
	p := &Place{Endpoint: ep, server: srv, address: address, known: map[*Tenant]*line{}}
	ep.places = append(ep.places, p)
	return p
}

// placeAt returns the place of a server with an address.
func (all endpoints) placeAt(srv *Server, address string) *Place {
	if address == srv.Home.address {
		return srv.Home
	}
	p := srv.others[address]
	if p == nil {
		p = all.newPlace(srv, address)
		srv.others[address] = p
		p.Endpoint.noteHealth()
	}
	return p
}

// leave notes that a session has left a place, or that its server is no longer configured. A place without
// users is forgotten.
func (all endpoints) leave(p *Place) {
	if p.users--; p.users > 0 {
		return
	}
	delete(p.server.others, p.address)
	p.server.health.Remove(&p.health)
	p.Endpoint.places = slices.DeleteFunc(p.Endpoint.places, func(other *Place) bool { return other == p })
	if len(p.Endpoint.places) == 0 {
		delete(all, p.address)
	}
}
