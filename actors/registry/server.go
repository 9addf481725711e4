package registry

import (
	"context"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// server is what the registry knows of one configured server.
type server struct {
	mcpbridge.Server
	own    mcpbridge.Limits  // as they were configured
	limits *mcpbridge.Limits // of the server, or of the supervisor; read-only
	turns  *admission.Server // at its places
	class  string            // of the lists of all keys whose scopes declare no capabilities, or "" if they may have different ones
}

// newServer returns a server. One with PerKey has no address of its own: PerKey leads each of its
// sessions to one.
func (r *registry) newServer(srv mcpbridge.Server) *server {
	s := &server{Server: srv, own: srv.Limits, limits: limitsOf(r.cfg, srv.Limits)}
	if srv.ListClass == nil && srv.PerKey == nil {
		s.class = srv.ClassOf(context.Background(), messages.Key{Server: srv.Name}, r.cfg.Capabilities)
		if s.class == mcpbridge.OwnListClass(messages.DefaultScope) {
			s.class = ""
		}
	}
	address := ""
	if srv.PerKey == nil {
		address = srv.Endpoint()
	}
	s.turns = r.gate.NewServer(srv.Name, address, srv.Command != "")
	r.gate.SetLimits(s.turns, srv.Limits.MaxSessions, s.limits.MaxDials)
	return s
}
