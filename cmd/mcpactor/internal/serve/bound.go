package serve

import (
	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
)

// boundFlags bound how often each client calls the tools of each server that has no bounds of its own in the file.
type boundFlags struct {
	Bound map[string]int `hidden:"" mapsep:"," help:"How often a client may call the tools of a server: perMinute=N, total=N, inFlight=N, maxRepeats=N."`
}

// apply adds the bounds to a configuration, or returns an error for one that is wrong.
func (f *boundFlags) apply(cfg *supervisor.Config) error {
	var b mcpbridge.Bound
	for name, value := range f.Bound {
		if value <= 0 {
			return cli.Usagef("--bound: %s: must be greater than 0", name)
		}
		switch name {
		case "perMinute":
			b.PerMinute = value
		case "total":
			b.Total = value
		case "inFlight":
			b.InFlight = value
		case "maxRepeats":
			cfg.MaxRepeats = value
		default:
			return cli.Usagef("--bound: %q is none of perMinute, total, inFlight and maxRepeats", name)
		}
	}
	if b != (mcpbridge.Bound{}) {
		if err := b.Validate(); err != nil {
			return cli.Usagef("--bound: %w", err)
		}
		cfg.Bounds = append(cfg.Bounds, b)
	}
	return nil
}
