// Package servers tells the table and the gate which servers are configured, and with which limits.
package servers

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/limits"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Servers is used by the actor of the registry only.
type Servers struct {
	cfg   *contract.Config
	table *table.Table
	gate  *admission.Gate
}

// minKeysWithoutSlot is how many sessions without a slot are kept in any case.
const minKeysWithoutSlot = 1024

// NewGate returns the gate that a configuration wants.
func NewGate(cfg *contract.Config) *admission.Gate {
	return admission.New(admission.Config{
		MaxSessions: cfg.MaxSessions, MaxStarts: cfg.MaxStarts,
		MaxWithoutSlot: max(cfg.MaxSessions, minKeysWithoutSlot), FailFast: cfg.FailFast, Random: cfg.Random,
	})
}

// New returns the servers of a configuration, which the table and the gate have from then on.
func New(cfg *contract.Config, t *table.Table, gate *admission.Gate) *Servers {
	s := &Servers{cfg, t, gate}
	for _, srv := range cfg.Servers {
		t.Servers[srv.Name] = s.Add(srv, cfg.Classes[srv.Name])
	}
	return s
}

// Add makes a server known to the gate. One with PerKey has no address of its own: PerKey leads each of its
// sessions to one.
func (s *Servers) Add(srv mcpbridge.Server, class string) *table.Server {
	added := &table.Server{Server: srv, Own: srv.Limits, Resolved: LimitsOf(s.cfg, srv.Limits), Class: class}
	address := ""
	if srv.PerKey == nil {
		address = srv.Endpoint()
	}
	added.Turns = s.gate.NewServer(srv.Name, address, srv.Command != "")
	s.gate.SetLimits(added.Turns, added.Resolved.MaxSessions, added.Resolved.MaxDials)
	return added
}

// Next returns the servers of a reload: those of the table that have not changed, which get their new limits, and others, which are
// added.
func (s *Servers) Next(configured []mcpbridge.Server, classes map[string]string) table.Servers {
	next := make(table.Servers, len(configured))
	for _, srv := range configured {
		before := s.table.Servers[srv.Name]
		if before != nil && before.Same(&srv) {
			s.setLimits(before, srv.Limits)
			next[srv.Name] = before
			continue
		}
		next[srv.Name] = s.Add(srv, classes[srv.Name])
		change := "server changed"
		if before == nil {
			change = "server added"
		}
		s.cfg.Logger.Info().Str("server", srv.Name).Msg(change)
	}
	for _, name := range slices.Sorted(maps.Keys(s.table.Servers)) {
		if next[name] == nil {
			s.cfg.Logger.Info().Str("server", name).Msg("server removed")
		}
	}
	return next
}

// Replace replaces the servers of the table. It returns the names of those that were removed or have changed.
func (s *Servers) Replace(next table.Servers) (replaced []string) {
	for name, srv := range s.table.Servers {
		if next[name] != srv {
			s.gate.Remove(srv.Turns)
			replaced = append(replaced, name)
		}
	}
	s.table.Servers = next
	return replaced
}

// setLimits replaces the limits of a server. Its sessions are told before the next message
// that the limits concern.
func (s *Servers) setLimits(srv *table.Server, own mcpbridge.Limits) {
	if !reflect.DeepEqual(own, srv.Own) {
		s.cfg.Logger.Info().Str("server", srv.Name).Msg("server limits changed")
		srv.Own, srv.Resolved = own, LimitsOf(s.cfg, own)
		s.gate.SetLimits(srv.Turns, srv.Resolved.MaxSessions, srv.Resolved.MaxDials)
	}
}

// LimitsOf returns the limits of a server, with those of the supervisor in place of zero values. No limit is a large one, but
// 0 for MaxSessions, IdleTimeout and MaxRepeats.
func LimitsOf(cfg *contract.Config, own mcpbridge.Limits) *mcpbridge.Limits {
	bounds := own.Bounds
	if bounds == nil {
		bounds = cfg.Bounds
	}
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
		Bounds:         bounds,
		MaxRepeats:     max(0, cmp.Or(own.MaxRepeats, cfg.MaxRepeats)),
	}
}
