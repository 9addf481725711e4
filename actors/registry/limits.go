package registry

import (
	"cmp"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
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

// limits returns the limits of a server, or those of the supervisor if no server of that
// name is configured.
func (r *registry) limits(server string) *mcpbridge.Limits {
	if srv := r.servers[server]; srv != nil {
		return srv.limits
	}
	return r.defaults
}

// setLimits replaces the limits of a server. Its sessions are told before the next message
// that the limits concern.
func (r *registry) setLimits(srv *server, own mcpbridge.Limits) {
	if own != srv.own {
		r.cfg.Logger.Info().Str("server", srv.Name).Msg("server limits changed")
		srv.own, srv.limits = own, limitsOf(r.cfg, own)
		r.gate.SetLimits(srv.turns, own.MaxSessions, srv.limits.MaxDials)
	}
}

// slowest returns the longest DrainTimeout and the longest CloseTimeout of the servers.
func (r *registry) slowest() (drain, shut time.Duration) {
	for _, srv := range r.servers {
		drain, shut = max(drain, srv.limits.DrainTimeout), max(shut, srv.limits.CloseTimeout)
	}
	return drain, shut
}
