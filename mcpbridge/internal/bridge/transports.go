package bridge

import (
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/memory"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/sse"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/stdio"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/streamable"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
)

// newTransport returns the way to reach a server. No other code of this package distinguishes
// transports.
func newTransport(config *mcpbridge.Server) transport.Server {
	switch {
	case config.InMemory != nil:
		return memory.New(config)
	case config.Command != "":
		return stdio.New(config)
	case config.Transport == mcpbridge.TransportSSE:
		return sse.New(config)
	}
	return streamable.New(config)
}
