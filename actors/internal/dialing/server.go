package dialing

import (
	"cmp"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
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
	d.Gate.SetLimits(s.Turns, srv.Limits.MaxSessions, s.Resolved.MaxDials)
	return s
}

// SetLimits replaces the limits of a server. Its sessions are told before the next message
// that the limits concern.
func (d *Dialing) SetLimits(srv *table.Server, own mcpbridge.Limits) {
	if own != srv.Own {
		d.Cfg.Logger.Info().Str("server", srv.Name).Msg("server limits changed")
		srv.Own, srv.Resolved = own, LimitsOf(d.Cfg, own)
		d.Gate.SetLimits(srv.Turns, own.MaxSessions, srv.Resolved.MaxDials)
	}
}

// LimitsOf returns the limits of a server, without zero values that stand for those of the
// supervisor: MaxSessions 0 is no bound, MaxWaiting 0 is none, and IdleTimeout 0 is never.
func LimitsOf(cfg *contract.Config, own mcpbridge.Limits) *mcpbridge.Limits {
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
