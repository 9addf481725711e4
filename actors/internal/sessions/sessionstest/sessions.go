// Package sessionstest makes sessions whose actors do nothing, for tests of the rooms that use them.
package sessionstest

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/lists"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox/mailboxtest"
	"github.com/mcpactor/mcpactor/actors/internal/owners"
	"github.com/mcpactor/mcpactor/actors/internal/servers"
	"github.com/mcpactor/mcpactor/actors/internal/sessions"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// spawner counts the actors that it is asked to spawn, and spawns none.
type spawner int

func (s *spawner) SpawnPrefix(*actor.Props, string) *actor.PID {
	*s++
	return &actor.PID{Id: fmt.Sprint(*s)}
}

// New returns sessions, of which there are none yet. Without servers in the configuration there is one that is called "s".
func New(with protocol.Config) *sessions.Sessions {
	if with.Servers == nil {
		with.Servers = []mcpbridge.Server{{Name: "s"}}
	}
	with.MaxSessions, with.MaxDials, with.Random = cmp.Or(with.MaxSessions, 10), cmp.Or(with.MaxDials, 10), rand.Float64
	with.Logger, with.Events = relay.NewLogger(zerolog.Nop()), relay.New(100, func(any) {}, nil, nil)
	cfg := &contract.Config{Config: with}
	m, _ := mailboxtest.New()
	all := sessions.With{
		Cfg: cfg, Mailbox: m, Table: table.New(servers.LimitsOf(cfg, mcpbridge.Limits{}), table.Tenants{}), Gate: servers.NewGate(cfg),
		Owners: owners.New(), Closings: closing.New(10), Alarm: new(alarm.Alarm[func()]),
	}
	all.Servers = servers.New(cfg, all.Table, all.Gate)
	all.Lists = lists.New(lists.With{Cfg: cfg, Table: all.Table, Owners: all.Owners})
	s := sessions.New(all)
	s.Spawner = new(spawner)
	return s
}

// Session is a session, and what its actor was sent.
type Session struct {
	*table.Registration
	*mailboxtest.Inbox
}

// Current returns the session of a key, which is spawned if there is none.
func Current(s *sessions.Sessions, key messages.Key) Session { return Follow(s.Current(key)) }

// Follow returns a session with what its actor is sent from now on.
func Follow(reg *table.Registration) Session {
	var read *mailboxtest.Inbox
	reg.Mailbox, read = mailboxtest.New()
	return Session{reg, read}
}
