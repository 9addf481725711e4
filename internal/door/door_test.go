package door

import (
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/internal/leaktest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, leaktest.Throttle...)
}

func newSystem() *actor.ActorSystem {
	return actor.NewActorSystem(func(config *actor.Config) {
		config.LoggerFactory = func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
	})
}

// echo answers each text with itself.
type echo struct{ stopped func() }

func (e echo) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case string:
		c.Respond(msg)
	case *actor.Stopped:
		e.stopped()
	}
}

// open opens a door to an echo. In its place "late" is answered.
func open(system *actor.ActorSystem) *actor.PID {
	late := func(_ any, sender *actor.PID) {
		if sender != nil {
			system.Root.Send(sender, "late")
		}
	}
	ended := func(watcher, who *actor.PID) {
		process, _ := system.ProcessRegistry.Get(watcher)
		process.SendSystemMessage(watcher, &actor.Terminated{Who: who})
	}
	pid, _ := Open(system, "echo"+system.ProcessRegistry.NextId(), late, ended, func(stopped func()) *actor.PID {
		return system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return echo{stopped} }))
	})
	return pid
}

// box is a process that keeps what it gets.
type box struct{ got chan any }

func (b box) SendUserMessage(_ *actor.PID, msg any)   { b.got <- actor.UnwrapEnvelopeMessage(msg) }
func (b box) SendSystemMessage(_ *actor.PID, msg any) { b.got <- msg }
func (b box) Stop(*actor.PID)                         {}

func newBox(system *actor.ActorSystem) (*actor.PID, chan any) {
	b := box{make(chan any, 1000)}
	pid, _ := system.ProcessRegistry.Add(b, system.ProcessRegistry.NextId())
	return pid, b.got
}

// end stops what a door leads to, and waits until that has stopped.
func end(system *actor.ActorSystem, pid *actor.PID) {
	me, got := newBox(system)
	defer system.ProcessRegistry.Remove(me)
	door, _ := system.ProcessRegistry.Get(pid)
	door.SendSystemMessage(pid, &actor.Watch{Watcher: me})
	system.Root.Stop(pid)
	<-got
}

func TestDoorAnswersWhenItsActorHasStopped(t *testing.T) {
	for name, stop := range map[string]func(*actor.ActorSystem, *actor.PID){
		"stop":   func(s *actor.ActorSystem, pid *actor.PID) { s.Root.Stop(pid) },
		"poison": func(s *actor.ActorSystem, pid *actor.PID) { s.Root.Poison(pid) },
	} {
		t.Run(name, func(t *testing.T) {
			system := newSystem()
			pid := open(system)
			me, got := newBox(system)
			system.Root.RequestWithCustomSender(pid, "hello", me)
			require.Equal(t, "hello", <-got)
			system.Root.Send(pid, "nobody waits")

			other, unwanted := newBox(system)
			for _, watcher := range []*actor.PID{me, me, other} {
				door, _ := system.ProcessRegistry.Get(pid)
				door.SendSystemMessage(pid, &actor.Watch{Watcher: watcher})
			}
			door, _ := system.ProcessRegistry.Get(pid)
			door.SendSystemMessage(pid, &actor.Unwatch{Watcher: other})
			stop(system, pid)
			require.True(t, pid.Equal((<-got).(*actor.Terminated).Who))

			system.Root.RequestWithCustomSender(pid, "hello", me)
			require.Equal(t, "late", <-got)
			system.Root.RequestWithCustomSender(actor.NewPID(pid.Address, pid.Id), "hello", me)
			require.Equal(t, "late", <-got)
			system.Root.Send(pid, "nobody waits")
			door.SendSystemMessage(pid, &actor.Watch{Watcher: me})
			require.True(t, pid.Equal((<-got).(*actor.Terminated).Who))
			end(system, pid)
			require.Empty(t, got)
			require.Empty(t, unwanted)
		})
	}
}

func TestNoMessageIsADeadLetterWhileTheActorStops(t *testing.T) {
	for range 20 {
		system := newSystem()
		var letters atomic.Int32
		system.EventStream.Subscribe(func(event any) {
			if _, dead := event.(*actor.DeadLetterEvent); dead {
				letters.Add(1)
			}
		})
		pid := open(system)
		var senders sync.WaitGroup
		for range 4 {
			senders.Go(func() {
				for range 500 {
					system.Root.Send(actor.NewPID(pid.Address, pid.Id), 0)
				}
			})
		}
		system.Root.Stop(pid)
		senders.Wait()
		require.Zero(t, letters.Load())
	}
}

func TestDoorIsForgottenWithItsPID(t *testing.T) {
	system := newSystem()
	kept := func() int {
		n := 0
		for _, bucket := range system.ProcessRegistry.LocalPIDs.LocalPIDs {
			n += bucket.Count()
		}
		return n
	}
	before := kept()
	held := open(system)
	for range 100 {
		end(system, open(system))
	}
	end(system, held)
	require.Eventually(t, func() bool {
		runtime.GC()
		return kept() <= before+1
	}, 10*time.Second, 10*time.Millisecond)
	door, there := system.ProcessRegistry.Get(held)
	require.True(t, there)
	require.IsType(t, &Door{}, door)
}

// A subscriber of a system may have the PID. That keeps neither of them in memory.
func TestDoorKeepsNoSystemInMemory(t *testing.T) {
	var freed atomic.Bool
	func() {
		system := newSystem()
		pid := open(system)
		runtime.AddCleanup(system, func(struct{}) { freed.Store(true) }, struct{}{})
		system.EventStream.Subscribe(func(any) { runtime.KeepAlive(pid) })
		system.Root.Stop(pid)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		return freed.Load()
	}, 10*time.Second, 10*time.Millisecond)
}
