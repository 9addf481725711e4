package contract

import (
	"context"

	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

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
