package contract

import (
	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dispatch"
)

// Config is the configuration of the actors, with what they share.
type Config struct {
	actors.Config
	Dispatcher *dispatch.Dispatcher // of all actors, and of the work that leaves them
}
