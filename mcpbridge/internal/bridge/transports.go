package bridge

import (
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/memory"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/sse"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/stdio"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/streamable"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
)

// transports are the ways to reach servers. The first that is for a configuration is
// taken. No other code of this package distinguishes transports.
var transports = []struct {
	isFor func(*mcpbridge.Server) bool
	make  func(*mcpbridge.Server) transport.Server
}{
	{func(s *mcpbridge.Server) bool { return s.InMemory != nil }, memory.New},
	{func(s *mcpbridge.Server) bool { return s.Command != "" }, stdio.New},
	{func(s *mcpbridge.Server) bool { return s.Transport == mcpbridge.TransportSSE }, sse.New},
	{func(s *mcpbridge.Server) bool { return true }, streamable.New},
}

func newTransport(config *mcpbridge.Server) transport.Server {
	for _, t := range transports {
		if t.isFor(config) {
			return t.make(config)
		}
	}
	return nil // the last one is for all
}
