// Package dialer makes the bridge of a supervisor. It has no use outside of this module, to which the types of New belong.
package dialer

import (
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/bridge"
)

// New returns a bridge, which begins to run the Cleanup of servers for sessions of processes that were killed. Close ends that.
func New(cfg dial.BridgeConfig) dial.Bridge {
	b := bridge.New(cfg.Servers, cfg.Capabilities)
	if cfg.Logger != nil {
		b.LogTo(cfg.Logger)
	}
	b.Recover()
	return b
}
