// Package sessions spawns the actors of sessions, tells them to drain, and removes those that have ended.
package sessions

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/cleanup"
	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/lists"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/owners"
	"github.com/mcpactor/mcpactor/actors/internal/servers"
	"github.com/mcpactor/mcpactor/actors/internal/session"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Sessions is used by the actor of the registry only.
type Sessions struct {
	With
	// Spawner spawns actors as children of the registry. It is set when that has started.
	Spawner interface {
		SpawnPrefix(props *actor.Props, prefix string) *actor.PID
	}
	// Children is how many actors were spawned whose end is not known.
	Children int
}

// With is what sessions need.
type With struct {
	Cfg      *contract.Config
	Mailbox  *mailbox.Mailbox // of the registry
	Table    *table.Table
	Gate     *admission.Gate
	Lists    *lists.Lists
	Servers  *servers.Servers
	Owners   *owners.Book
	Closings *closing.Book
	Alarm    *alarm.Alarm[func()]
}

// New returns sessions, of which there are none yet.
func New(with With) *Sessions { return &Sessions{With: with} }

// SetState notes the state of a session. It has lists while it is ready.
func (s *Sessions) SetState(reg *table.Registration, state messages.State) {
	if s.Table.SetState(reg, state); state == messages.StateReady {
		s.Lists.Opened(reg)
	} else {
		s.Lists.Lost(reg)
	}
}

// Current returns the current session of a key. If there is none, it spawns its actor, which
// does not dial.
func (s *Sessions) Current(key messages.Key) *table.Registration {
	e := s.Table.Ensure(key)
	if e.Current != nil {
		return e.Current
	}
	reg := &table.Registration{Key: key, Server: s.Table.Servers[key.Server]}
	child := s.join(reg, s.Table.JoinTenant(reg))
	props, box := session.Props(session.Spec{
		Child: child, Server: &reg.Server.Server, Bind: s.Owners.Binding(key.Scope),
		Floor: s.Table.Generations.Floor, NoResume: e.ClosesRecord(), Leftovers: s.Closings.Leftovers.SessionIDs(key),
	})
	s.start(reg, props, box)
	s.SetState(reg, messages.StateWaiting)
	e.Current = reg
	return reg
}

// CleanUp spawns an actor that closes leftovers of a key, and the MCP session in the store unless that is to
// be left. The next session of the key waits for it.
func (s *Sessions) CleanUp(key messages.Key, left []contract.Leftover, leave bool) *table.Registration {
	e := s.Table.Ensure(key)
	srv := s.Table.Servers[key.Server]
	if srv == nil {
		srv = s.Servers.Add(mcpbridge.Server{Name: key.Server}, "")
	}
	reg := &table.Registration{Key: key, Server: srv, Session: admission.Session{Draining: true, Cleanup: true}}
	reg.DrainedBy, reg.Leftovers = contract.Drain{Leave: leave}, left
	props, box := cleanup.Props(s.join(reg, nil), cleanup.Sessions{Leftovers: left, Leave: leave})
	s.start(reg, props, box)
	if s.Table.Servers[key.Server] != srv {
		s.Gate.Remove(srv.Turns) // when this session has left
	}
	s.SetState(reg, messages.StateDraining)
	e.Draining = append(e.Draining, reg)
	return reg
}

// join gives a session its place among the others, and returns what its actor is spawned with.
func (s *Sessions) join(reg *table.Registration, tenant *admission.Tenant) contract.Child {
	reg.Limits = reg.Server.Resolved
	reg.Of = reg
	s.Gate.Join(&reg.Session, reg.Server.Turns, tenant)
	life, end := context.WithCancelCause(context.Background())
	reg.EndLife = func() { end(contract.ErrLifeOver) }
	return contract.Child{
		Config: s.Cfg, Life: life, Key: reg.Key, Limits: reg.Limits,
		Registry: s.Mailbox, Registration: reg, Generation: s.Table.Entry(reg.Key).Generation,
	}
}

// start spawns the actor of a session.
func (s *Sessions) start(reg *table.Registration, props *actor.Props, mailbox *mailbox.Mailbox) {
	reg.Mailbox = mailbox
	reg.PID = s.Spawner.SpawnPrefix(props, "session")
	s.Children++
	s.Table.Add(reg)
}

// Drain takes a session out of use and tells it to drain. A session that drains can be
// told once more, to close sooner.
func (s *Sessions) Drain(reg *table.Registration, how contract.Drain) {
	if before := reg.DrainedBy; reg.Draining {
		switch {
		case !before.Evict && !before.Leave: // it is closed for good
			how.Leave = false
		case before.Leave && !before.Moves: // the registry stops
			how.Leave = true
		}
		if reg.Cleanup || !how.Changes(before) {
			return
		}
	} else {
		s.TakeOutOfUse(reg)
	}
	reg.DrainedBy = how
	reg.TellLimits()
	reg.Send(&how)
}

// TakeOutOfUse removes a session from its key: the next call of the key gets a new
// session.
func (s *Sessions) TakeOutOfUse(reg *table.Registration) {
	reg.WantNoDial(s.Alarm)
	s.Gate.Drain(&reg.Session)
	s.SetState(reg, messages.StateDraining)
	s.Table.TakeOutOfUse(reg)
}

// Remove removes a session that is closed, and gives its slot to others. It returns the sessions of the key, which may have waited
// for that.
func (s *Sessions) Remove(reg *table.Registration) (waited []*table.Registration) {
	s.Lists.Closed(reg)
	reg.WantNoDial(s.Alarm)
	waited = s.Table.Remove(reg)
	s.Gate.Leave(&reg.Session)
	return waited
}

// HandSettingsOver gives the settings of a session that was restarted to the next session
// of the key, which has not dialed yet.
func (s *Sessions) HandSettingsOver(msg *contract.SessionClosed) {
	if e := s.Table.Entry(table.Of(msg.Of).Key); e.Current != nil && !msg.Settings.Empty() {
		e.Current.Send(&contract.AdoptSettings{Settings: msg.Settings})
	}
}
