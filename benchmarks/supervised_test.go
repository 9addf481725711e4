package benchmarks

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// serverName is the name of the one server of each supervisor.
const serverName = "s"

// supervised is a supervisor in an actor system of its own. It calls as plain Go code
// does, through supervisor.Client.
type supervised struct {
	*supervisor.Supervisor
	system *actor.ActorSystem
	plain  *supervisor.Client
	agents sync.Pool
}

// noLog makes an actor system log nothing.
var noLog = actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) })

// supervise starts a supervisor for one server.
func supervise(r route, cfg supervisor.Config) (*supervised, error) {
	r.server.Name = serverName
	cfg.Servers = []mcpbridge.Server{r.server}
	if r.dialer != nil {
		cfg = dial.Replace(cfg, r.dialer)
	}
	system := actor.NewActorSystem(noLog)
	sup, err := supervisor.Start(system, cfg)
	if err != nil {
		return nil, err
	}
	s := &supervised{Supervisor: sup, system: system, plain: sup.Client()}
	s.agents.New = func() any { return newAgent(system) }
	return s, nil
}

// openClient returns openers of clients that call through supervisor.Client.
func openClient(cfg supervisor.Config) opener {
	return func(r route) (client, error) { return supervise(r, cfg) }
}

func (s *supervised) call(ctx context.Context, key string) error {
	_, err := s.plain.CallTool(ctx, serverName, key, echoParams())
	return err
}

func (s *supervised) drop(ctx context.Context, key string) error {
	_, err := s.plain.CloseScope(ctx, key)
	return err
}

func (s *supervised) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		panic(err) // sessions are left over, which would disturb the next contender
	}
}

// dials returns how often the supervisor tried to open a session.
func (s *supervised) dials() int64 {
	snap, err := s.plain.Inspect(context.Background())
	if err != nil {
		return -1
	}
	return int64(snap.Counters.Dials)
}

// growTables makes the tables of the actor system as large as they become with use:
// they have some 30,000 maps, each of which grows at its first entry and stays.
func (s *supervised) growTables() {
	for range 300_000 {
		if pid, ok := s.system.ProcessRegistry.Add(&agent{}, s.system.ProcessRegistry.NextId()); ok {
			s.system.ProcessRegistry.Remove(pid)
		}
	}
}

// byMessage calls as an actor does: with a message that is answered by a message.
type byMessage struct {
	*supervised
	attributes messages.Attributes // of all its messages
}

// openMessage returns openers of clients that call by messages.
func openMessage(cfg supervisor.Config) opener {
	return func(r route) (client, error) {
		s, err := supervise(r, cfg)
		return byMessage{supervised: s}, err
	}
}

func (m byMessage) call(_ context.Context, key string) error {
	a := m.agents.Get().(*agent)
	defer m.agents.Put(a)
	cmd := command(key)
	cmd.Attributes = m.attributes
	m.system.Root.RequestWithCustomSender(m.PID(), cmd, a.pid)
	if f, ok := (<-a.replies).(*messages.Failure); ok {
		return f
	}
	return nil
}

func command(key string) *messages.CallTool {
	return &messages.CallTool{Header: messages.To(serverName, key), Params: echoParams()}
}

// agent is a process of the actor system that keeps the replies it gets.
type agent struct {
	pid     *actor.PID
	replies chan any
}

func newAgent(system *actor.ActorSystem) *agent {
	a := &agent{replies: make(chan any, 1)}
	a.pid, _ = system.ProcessRegistry.Add(a, system.ProcessRegistry.NextId())
	return a
}

func (a *agent) SendUserMessage(_ *actor.PID, msg any) { a.replies <- actor.UnwrapEnvelopeMessage(msg) }

func (a *agent) SendSystemMessage(*actor.PID, any) {}
func (a *agent) Stop(*actor.PID)                   {}

// Prompt says that the agent stands for an actor: a message is queued at once.
func (a *agent) Prompt() {}
