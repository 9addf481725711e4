package registry

import (
	"cmp"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// limitsOf returns the limits of a server, without zero values that stand for those of the
// supervisor: MaxSessions 0 is no bound, MaxWaiting 0 is none, and IdleTimeout 0 is never.
func limitsOf(cfg *contract.Config, own mcpbridge.Limits) *mcpbridge.Limits {
	return &mcpbridge.Limits{
		MaxSessions:    own.MaxSessions,
		MaxInFlight:    cmp.Or(own.MaxInFlight, cfg.MaxInFlight),
		MaxWaiting:     max(0, cmp.Or(own.MaxWaiting, cfg.MaxWaiting)),
		MaxDials:       cmp.Or(own.MaxDials, cfg.MaxDials),
		IdleTimeout:    max(0, cmp.Or(own.IdleTimeout, cfg.IdleTimeout)),
		ConnectTimeout: cmp.Or(own.ConnectTimeout, cfg.ConnectTimeout),
		CallTimeout:    cmp.Or(own.CallTimeout, cfg.CallTimeout),
		DrainTimeout:   cmp.Or(own.DrainTimeout, cfg.DrainTimeout),
		CloseTimeout:   cmp.Or(own.CloseTimeout, cfg.CloseTimeout),
		HandlerTimeout: cmp.Or(own.HandlerTimeout, cfg.HandlerTimeout),
	}
}

// setLimits replaces the limits of a server. Its sessions are told before the next message
// that the limits concern.
func (r *registry) setLimits(srv *table.Server, own mcpbridge.Limits) {
	if own != srv.Own {
		r.cfg.Logger.Info().Str("server", srv.Name).Msg("server limits changed")
		srv.Own, srv.Resolved = own, limitsOf(r.cfg, own)
		r.gate.SetLimits(srv.Turns, own.MaxSessions, srv.Resolved.MaxDials)
	}
}
