package bench

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// server is the name of the one server of each supervisor.
const serverName = "s"

// supervised is a supervisor in an actor system of its own.
type supervised struct {
	*supervisor.Supervisor
	system *actor.ActorSystem
	client *supervisor.Client
	askers sync.Pool
}

// quiet is an actor system that logs nothing.
var quiet = actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) })

// supervise starts a supervisor for one server.
func supervise(srv mcpbridge.Server, cfg supervisor.Config) (*supervised, error) {
	srv.Name = serverName
	cfg.Servers = []mcpbridge.Server{srv}
	system := actor.NewActorSystem(quiet)
	sup, err := supervisor.Start(system, cfg)
	if err != nil {
		return nil, err
	}
	s := &supervised{Supervisor: sup, system: system, client: sup.Client()}
	s.askers.New = func() any {
		a := &asker{replies: make(chan any, 1)}
		a.pid, _ = system.ProcessRegistry.Add(a, system.ProcessRegistry.NextId())
		return a
	}
	return s, nil
}

// call calls as plain Go code does.
func (s *supervised) call(ctx context.Context, scope string) error {
	_, err := s.client.CallTool(ctx, serverName, scope, echoParams())
	return err
}

// message calls as an agent does, which has a PID already: by a message that is
// answered by a message.
func (s *supervised) message(scope string) error {
	a := s.askers.Get().(*asker)
	defer s.askers.Put(a)
	s.system.Root.RequestWithCustomSender(s.PID(), command(scope), a.pid)
	if f, ok := (<-a.replies).(*messages.Failure); ok {
		return f
	}
	return nil
}

// fill makes the tables of the actor system as large as they become with use: they have
// some 30,000 maps, each of which grows when it is used first, and stays.
func (s *supervised) fill() {
	for range 300_000 {
		if pid, ok := s.system.ProcessRegistry.Add(&asker{}, s.system.ProcessRegistry.NextId()); ok {
			s.system.ProcessRegistry.Remove(pid)
		}
	}
}

func command(scope string) *messages.CallTool {
	return &messages.CallTool{Header: messages.To(serverName, scope), Params: echoParams()}
}

func (s *supervised) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return s.Stop(ctx)
}

// asker stands for an agent.
type asker struct {
	pid     *actor.PID
	replies chan any
}

// SendUserMessage takes a reply.
func (a *asker) SendUserMessage(_ *actor.PID, msg any) { a.replies <- actor.UnwrapEnvelopeMessage(msg) }

// SendSystemMessage does nothing.
func (a *asker) SendSystemMessage(*actor.PID, any) {}

// Stop does nothing.
func (a *asker) Stop(*actor.PID) {}
