package serve

import (
	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/gateway"
	"github.com/mcpactor/mcpactor/toolset"
)

// listFlags say which tools a client is shown of those that it gets.
type listFlags struct {
	Find      int    `placeholder:"N" help:"List the N tools used last, and a tool that finds others. Further: --find-calls, --stability, --allow, --deny, --read-only, --bound, --pin."`
	FindCalls bool   `hidden:"" help:"With --find: a tool that calls found tools which only read."`
	Stability string `hidden:"" default:"append" enum:"append,freeze,follow" help:"How the list of tools changes: append, freeze or follow."`
}

// check returns an error for flags that are wrong, or have no effect.
func (f *listFlags) check() error {
	switch {
	case f.Find < 0:
		return cli.Usagef("--find: must not be negative")
	case f.FindCalls && f.Find == 0:
		return cli.Usagef("--find-calls: needs --find")
	}
	return nil
}

func (f *listFlags) apply(cfg *gateway.Config) {
	cfg.Stability, cfg.Find, cfg.FindCalls = toolset.Stability(f.Stability), f.Find, f.FindCalls
}
