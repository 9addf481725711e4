package registry

import (
	"cmp"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/calls"
	"github.com/mcpactor/mcpactor/actors/internal/catalogue"
	"github.com/mcpactor/mcpactor/actors/internal/closer"
	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/dialing"
	"github.com/mcpactor/mcpactor/actors/internal/interception"
	"github.com/mcpactor/mcpactor/actors/internal/lists"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/member"
	"github.com/mcpactor/mcpactor/actors/internal/owners"
	"github.com/mcpactor/mcpactor/actors/internal/pace"
	"github.com/mcpactor/mcpactor/actors/internal/refusal"
	"github.com/mcpactor/mcpactor/actors/internal/reports"
	"github.com/mcpactor/mcpactor/actors/internal/sessions"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/dispatch"
	"github.com/mcpactor/mcpactor/internal/door"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
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
		Declared: mcpbridge.Declared(with.Capabilities), Classes: protocol.ClassesOf(with.Servers, with.Capabilities),
	}
}

// props returns the Props of the registry that [Start] spawns.
func props(cfg contract.Config) *actor.Props {
	m := new(mailbox.Mailbox)
	return actor.PropsFromProducer(func() actor.Actor {
		return newRegistry(&cfg, m)
	}, cfg.RunsOn(m)...)
}

// newRegistry returns a registry that has no sessions.
func newRegistry(cfg *contract.Config, m *mailbox.Mailbox) *registry {
	r := &registry{
		cfg: cfg, reports: reports.New(cfg),
		gate:         dialing.NewGate(cfg),
		closings:     closing.New(max(cfg.MaxSessions, closing.MinLeftovers)),
		unknownTypes: map[string]bool{}, mailbox: m,
	}
	of := table.Config{Limits: dialing.LimitsOf(cfg, mcpbridge.Limits{}), MaxSessionsPerTenant: cfg.MaxSessionsPerTenant}
	if cfg.Tenant != nil {
		of.Tenant = r.tenantName
	}
	r.owners = owners.New(owners.Do{
		Watch:   func(pid *actor.PID) { cfg.Post.Watch(pid, r.self) },
		Unwatch: func(pid *actor.PID) { cfg.Post.Unwatch(pid, r.self) },
		Unbound: func(scope string, was *messages.Bind) { r.lists.Separate(scope, was) },
	})
	r.table = table.New(of)
	r.refusal = &refusal.Refusal{Table: r.table, Sessions: &r.gate.Sessions, FailFast: cfg.FailFast, MaxWaitingTotal: cfg.MaxWaitingTotal, Gone: cfg.Post.Gone}
	r.member = &member.Member{Cfg: cfg, Table: r.table}
	r.lists = &lists.Lists{
		Cfg: cfg, Mailbox: m, Table: r.table, Owners: r.owners, Catalogue: catalogue.New(),
		Do: lists.Do{Owns: r.member.Owns, Publish: r.reports.Publish, Await: r.await},
	}
	inSteps := func(step func() (more bool)) { r.do(&job{step: step}) }
	later := func(step func() (more bool)) { m.PostUserMessage(&job{step: step}) }
	r.dialing = dialing.New(dialing.With{
		Cfg: cfg, Table: r.table, Gate: r.gate, Lists: r.lists, Reports: r.reports, Alarm: &r.due.Alarm,
		Do: dialing.Do{
			Evict:   func(reg *table.Registration) { r.sessions.Drain(reg, contract.Drain{Evict: true}) },
			InSteps: inSteps, Later: later,
		},
	})
	r.sessions = &sessions.Sessions{With: sessions.With{
		Cfg: cfg, Mailbox: m, Table: r.table, Gate: r.gate, Lists: r.lists, Dialing: r.dialing, Owners: r.owners, Closings: r.closings, Alarm: &r.due.Alarm,
	}}
	r.closer = &closer.Closer{
		Cfg: cfg, Table: r.table, Book: r.closings, Sessions: r.sessions, Member: r.member, Alarm: &r.due.Alarm,
		Do: closer.Do{Reply: r.respond, InSteps: inSteps, Later: later, Await: r.await, Ended: r.stopIfEmpty},
	}
	r.calls = &calls.Calls{With: calls.With{
		Cfg: cfg, Table: r.table, Refusal: r.refusal, Owners: r.owners, Lists: r.lists, Dialing: r.dialing, Member: r.member, Reports: r.reports,
		Do: calls.Do{SessionOf: r.sessions.Current, ApplyCloses: r.closer.Apply, SweepCalls: r.sweepCalls},
	}}
	r.cancellations = pace.New[messages.Key](&r.due.Alarm)
	r.interceptors = interception.New(interception.With{
		Cfg: cfg, Mailbox: m, Table: r.table, Refusal: r.refusal, Owners: r.owners, Cancellations: r.cancellations, Alarm: &r.due.Alarm,
		Do: interception.Do{Accept: r.calls.Accept, HandBack: r.calls.HandBack, Withdraw: r.withdraw, Ended: r.stopIfEmpty},
	})
	for _, srv := range cfg.Servers {
		r.table.Servers[srv.Name] = r.dialing.NewServer(srv, cfg.Classes[srv.Name])
	}
	return r
}
