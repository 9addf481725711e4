package actors

import (
	"container/list"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// server is what the registry knows of one configured server.
type server struct {
	mcpbridge.Server
	address         string // identifies the endpoint, see [mcpbridge.Server.Endpoint]
	endpoint        *endpoint
	dialing         int           // dial permits in use
	queue           list.List     // of *registration: sessions that wait for a grant
	waitingPosition *list.Element // in waitingServers; nil while the queue is empty
}

// newServer returns a server. Servers with the same address share one endpoint.
func (r *registry) newServer(srv mcpbridge.Server, among ...map[string]*server) *server {
	s := &server{Server: srv, address: srv.Endpoint()}
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
