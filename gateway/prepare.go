package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/introduction"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Prepare returns the configuration of servers whose sessions may be those of clients of a gateway: a session is told the name and
// the capabilities of its client, and what the server sends is passed on as it is. A server that speaks several revisions is asked for
// that of the client first. Give the result to [supervisor.Start], or to Start of package cluster on each member. A gateway
// refuses other servers. Sessions of the same supervisor that are not those of a gateway work as before.
//
// PerKey of a configuration still applies. Without it, and without ListClass, all scopes whose clients say the same of
// themselves share the lists of the server.
func Prepare(servers ...mcpbridge.Server) []mcpbridge.Server {
	prepared := slices.Clone(servers)
	for i := range prepared {
		prepare(&prepared[i])
	}
	return prepared
}

func prepare(srv *mcpbridge.Server) {
	if srv.Introduced {
		return
	}
	srv.Verbatim, srv.Introduced = true, true
	srv.CustomNotifications = []string{"*"}
	srv.CustomMethods = slices.Clone(srv.CustomMethods)
	for _, method := range taskMethods {
		if !slices.Contains(srv.CustomMethods, method) {
			srv.CustomMethods = append(srv.CustomMethods, method)
		}
	}
	base := *srv
	if base.PerKey == nil && base.ListClass == nil {
		srv.ListClass = func(messages.Key) string { return "clients" }
	}
	if base.PerKey == nil {
		srv.PerKeyID = "gateway" // all that PerKey does follows from the other fields
	}
	srv.PerKey = func(ctx context.Context, key messages.Key) (mcpbridge.Server, error) {
		one := base
		if base.PerKey != nil {
			var err error
			if one, err = base.PerKey(ctx, key); err != nil {
				return one, err
			}
		}
		said := cmp.Or(introduction.Of(ctx), nobody)
		one.ClientInfo, one.Initialize = cmp.Or(said.ClientInfo, one.ClientInfo), said.Initialize
		if slices.Contains(mcpserver.Revisions, said.ProtocolVersion) { // its sessions are like those that it would have without a gateway
			one.InitializeVersion = said.ProtocolVersion
		}
		one.PerKey, one.ListClass = nil, nil
		one.CustomMethods, one.CustomNotifications, one.Limits, one.Handles = nil, nil, mcpbridge.Limits{}, nil // as in srv
		return one, nil
	}
}

// nobody is what a session says of itself that is not that of one client.
var nobody = &messages.Introduction{}

// preparedServer returns the configuration of a server, or an error if it has none or is not prepared.
func preparedServer(backend Backend, name string) (*mcpbridge.Server, error) {
	switch srv := backend.Server(name); {
	case srv == nil:
		return nil, fmt.Errorf("server %q is not configured: use one of %q", name, backend.Servers())
	case !srv.Introduced:
		return nil, fmt.Errorf("server %q is not prepared for a gateway: give gateway.Prepare its configuration, and the result to the supervisor", name)
	default:
		return srv, nil
	}
}
