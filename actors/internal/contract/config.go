package contract

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Config is the configuration of the actors, with what they share.
type Config struct {
	actors.Config
	Dispatcher actor.Dispatcher  // of all actors, and of the work that leaves them
	Declared   string            // see [mcpbridge.Declared], of Capabilities
	Classes    map[string]string // of Servers, see [protocol.Reload]
}

// Child is what an actor of a key is spawned with by the registry.
type Child struct {
	Config       *Config
	Life         context.Context // as in KeyStore
	Key          messages.Key
	Limits       *mcpbridge.Limits // read-only
	Registry     *mailbox.Mailbox  // of the registry
	Registration Registration      // in the messages of the actor
	Generation   uint64            // of the last MCP session of the key
}

// Store returns the store of the key.
func (c *Child) Store() KeyStore { return KeyStore{Cfg: c.Config, Key: c.Key, Life: c.Life} }
