package registry

import (
	"cmp"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/internal/dispatch"
	"github.com/mcpactor/mcpactor/internal/door"
	"github.com/mcpactor/mcpactor/internal/identity"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

func init() { protocol.StartRegistry = start }

// start is [protocol.StartRegistry].
func start(system *actor.ActorSystem, with protocol.Config) (pid *actor.PID, free bool) {
	name := cmp.Or(with.Name, "mcpactor"+system.ProcessRegistry.NextId())
	with.Name = name
	cfg := configOf(with, new(dispatch.Dispatcher)) // outside of the actor
	// The two functions must not keep cfg alive: cfg may lead to the PID, and while the PID is reachable, the
	// door is not freed.
	post := cfg.Post
	late := func(message any, sender *actor.PID) { protocol.Answer(post, name, message, sender) }
	ended := func(watcher, who *actor.PID) { post.Terminated(watcher, who, actor.TerminatedReason_Stopped) }
	return door.Open(system, name, late, ended, func(stopped func()) *actor.PID {
		then := cfg.Stopped
		cfg.Stopped = func(left []messages.Left) {
			stopped()
			then(left)
		}
		return system.Root.SpawnPrefix(props(cfg), "registry")
	})
}

// configOf returns the configuration of the actors. It runs code of the user: see [protocol.ClassesOf].
func configOf(with protocol.Config, d actor.Dispatcher) contract.Config {
	return contract.Config{
		Config: with, Dispatcher: d,
		Declared: identity.OfCapabilities(with.Capabilities), Classes: protocol.ClassesOf(with.Servers, with.Capabilities),
	}
}

// props returns the Props of the registry that [Start] spawns.
func props(cfg contract.Config) *actor.Props {
	m := new(mailbox.Mailbox)
	return actor.PropsFromProducer(func() actor.Actor {
		return newRegistry(&cfg, m)
	}, cfg.RunsOn(m)...)
}
