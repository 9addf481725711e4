package registry

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/internal/protocol"
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

// NewReload returns a reload. It runs code of the user, which may block: the MarshalJSON of what is sent when a session
// opens.
func NewReload(servers []mcpbridge.Server, can *mcp.ClientCapabilities, apply func()) *protocol.Reload {
	return &protocol.Reload{Servers: servers, Classes: classesOf(servers, can), Apply: apply}
}

// classesOf returns the classes of the lists of servers, see [protocol.Reload]. It runs code of the user, as NewReload does.
func classesOf(servers []mcpbridge.Server, can *mcp.ClientCapabilities) map[string]string {
	classes := map[string]string{}
	for _, srv := range servers {
		if srv.ListClass != nil || srv.PerKey != nil {
			continue
		}
		class := srv.ClassOf(context.Background(), messages.Key{Server: srv.Name}, can)
		if class != mcpbridge.OwnListClass(messages.DefaultScope) {
			classes[srv.Name] = class
		}
	}
	return classes
}

// newServer returns a server. One with PerKey has no address of its own: PerKey leads each of its
// sessions to one.
func (r *registry) newServer(srv mcpbridge.Server, class string) *server {
	s := &server{Server: srv, own: srv.Limits, limits: limitsOf(r.cfg, srv.Limits), class: class}
	address := ""
	if srv.PerKey == nil {
		address = srv.Endpoint()
	}
	s.turns = r.gate.NewServer(srv.Name, address, srv.Command != "")
	r.gate.SetLimits(s.turns, srv.Limits.MaxSessions, s.limits.MaxDials)
	return s
}
