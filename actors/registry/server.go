package registry

import (
	"container/list"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// server is what the registry knows of one configured server.
type server struct {
	mcpbridge.Server
	address         string // identifies the endpoint, see [mcpbridge.Server.Endpoint]
	endpoint        *endpoint
	own             mcpbridge.Limits                // as they were configured
	limits          *mcpbridge.Limits               // of the server, or of the supervisor; read-only
	sessions        *admission.Quota[*registration] // also of the sessions before and after a reload
	dialing         int                             // dial permits in use
	controls        []*control                      // that wait for one
	queued          int                             // sessions that wait for a grant here, in all lanes
	queuedPosition  *list.Element                   // in queuedPlaces of the base, or in endpoint.blocked; nil while nothing is queued
	lane            lane                            // of the sessions without a tenant
	ready, stuck    list.List                       // of *lane: those that are not empty
	queuedPlaces    list.List                       // of *server: the places with queued sessions that may have a permit, this one among them
	waitingPosition *list.Element                   // in waitingServers; nil while no lane is ready

	keyed map[string]*server // by address: the places that PerKey leads to, see [registry.place]
	base  *server            // that this is a place of; itself, unless PerKey has led to it
	users int                // sessions that use this place, if PerKey has led to it

	health     admission.LRU[*server]  // keyed by their health, if it is known
	healthNode admission.Node[*server] // in health of the base
	forgotten  *messages.Forget        // the last one that has reached this place
}

// newServer returns a server. Servers with the same address share one endpoint. A server
// with PerKey has no address: its sessions move to other places when they dial.
func (r *registry) newServer(srv mcpbridge.Server, among ...map[string]*server) *server {
	s := &server{Server: srv, own: srv.Limits, limits: limitsOf(r.cfg, srv.Limits)}
	s.base, s.lane.server = s, s
	if s.sessions = r.quotas[srv.Name]; s.sessions == nil {
		s.sessions = admission.NewQuota[*registration](0)
		r.quotas[srv.Name] = s.sessions
	}
	s.sessions.SetLimit(srv.Limits.MaxSessions)
	if srv.PerKey != nil {
		s.endpoint = new(endpoint)
		return s
	}
	s.address = srv.Endpoint()
	for _, servers := range among {
		for _, other := range servers {
			if other.address == s.address {
				s.endpoint = other.endpoint
				return s
			}
		}
	}
	s.endpoint = new(endpoint)
	return s
}
