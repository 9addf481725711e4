package session

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Spec is what a session is spawned with.
type Spec struct {
	contract.Child
	Server    *mcpbridge.Server // read-only
	Bind      *messages.Bind    // of the scope; not nil, read-only
	Floor     uint64            // the first generation is higher, unless the store has a record to resume
	NoResume  bool              // the record in the store is of an MCP session that is being closed
	Leftovers []string          // the ids of MCP sessions that could not be closed, and are not resumed
}

// Props returns the Props of a session, and its mailbox.
func Props(spec Spec) (*actor.Props, *mailbox.Mailbox) {
	d := &durable{
		cfg: spec.Config, store: spec.Store(), key: spec.Key, server: spec.Server, limits: spec.Limits,
		bind: spec.Bind,
		last: lastSession{generation: spec.Generation, floor: spec.Floor, noResume: spec.NoResume, leftovers: spec.Leftovers},
	}
	d.questions.Post, d.subscribers.Post = d.cfg.Post, d.cfg.Post
	d.requests = requests{cfg: d.cfg, to: &d.mailbox}
	d.dials = dials{cfg: d.cfg, to: &d.mailbox, last: &d.last}
	d.out = outbox{spec.Registry, spec.Registration, d.cfg.Post}
	d.mailbox.Parent = spec.Registry
	d.timer.Fire = func() { d.mailbox.PostUserMessage(&timerFired{}) }
	return actor.PropsFromProducer(func() actor.Actor { return newSession(d) }, d.cfg.RunsOn(&d.mailbox)...), &d.mailbox
}
