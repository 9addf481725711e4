package benchmarks

import (
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// how=alone is mcpactor with scopes that share nothing.
func init() {
	listContenders = append(listContenders, listContender{"alone", false, listToolsets(func(srv *mcpbridge.Server) {
		srv.ListClass = func(messages.Key) string { return "" }
	})})
}
