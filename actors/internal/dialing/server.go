package dialing

import (
	"cmp"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/limits"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// NewServer returns a server. One with PerKey has no address of its own: PerKey leads each of its
// sessions to one.
func (d *Dialing) NewServer(srv mcpbridge.Server, class string) *table.Server {
	s := &table.Server{Server: srv, Own: srv.Limits, Resolved: LimitsOf(d.Cfg, srv.Limits), Class: class}
	address := ""
	if srv.PerKey == nil {
		address = srv.Endpoint()
	}
	s.Turns = d.Gate.NewServer(srv.Name, address, srv.Command != "")
	d.Gate.SetLimits(s.Turns, s.Resolved.MaxSessions, s.Resolved.MaxDials)
	return s
}

// SetLimits replaces the limits of a server. Its sessions are told before the next message
// that the limits concern.
func (d *Dialing) SetLimits(srv *table.Server, own mcpbridge.Limits) {
	if own != srv.Own {
		d.Cfg.Logger.Info().Str("server", srv.Name).Msg("server limits changed")
		srv.Own, srv.Resolved = own, LimitsOf(d.Cfg, own)
		d.Gate.SetLimits(srv.Turns, srv.Resolved.MaxSessions, srv.Resolved.MaxDials)
	}
}

// LimitsOf returns the limits of a server, with those of the supervisor in place of zero values. No limit is a large one, but
// 0 for MaxSessions and IdleTimeout.
func LimitsOf(cfg *contract.Config, own mcpbridge.Limits) *mcpbridge.Limits {
	return &mcpbridge.Limits{
		MaxSessions:    max(0, own.MaxSessions),
		MaxInFlight:    limits.Of(cmp.Or(own.MaxInFlight, cfg.MaxInFlight)),
		MaxWaiting:     limits.Of(cmp.Or(own.MaxWaiting, cfg.MaxWaiting)),
		MaxDials:       limits.Of(cmp.Or(own.MaxDials, cfg.MaxDials)),
		IdleTimeout:    max(0, cmp.Or(own.IdleTimeout, cfg.IdleTimeout)),
		ConnectTimeout: limits.Of(cmp.Or(own.ConnectTimeout, cfg.ConnectTimeout)),
		CallTimeout:    limits.Of(cmp.Or(own.CallTimeout, cfg.CallTimeout)),
		DrainTimeout:   limits.Of(cmp.Or(own.DrainTimeout, cfg.DrainTimeout)),
		CloseTimeout:   limits.Of(cmp.Or(own.CloseTimeout, cfg.CloseTimeout)),
		HandlerTimeout: limits.Of(cmp.Or(own.HandlerTimeout, cfg.HandlerTimeout)),
	}
}
