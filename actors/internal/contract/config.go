package contract

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/protocol"
)

// Config is the configuration of the actors, with what they share.
type Config struct {
	protocol.Config
	Dispatcher actor.Dispatcher  // of all actors, and of the work that leaves them
	Declared   string            // identifies Capabilities
	Classes    map[string]string // of Servers, see [protocol.Reload]
}
