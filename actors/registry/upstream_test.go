package registry_test

import (
	"log/slog"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
)

// The tests of this file drive Proto.Actor alone. Each passes as long as Proto.Actor has the
// bug that the named code works around.

// newSystem returns an actor system that logs nothing.
func newSystem() *actor.ActorSystem {
	return actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond), // a goroutine waits for it
	)
}

// spawn starts an actor that runs in the goroutine of whoever sends to it.
func spawn(system *actor.ActorSystem, receive actor.ReceiveFunc) *actor.PID {
	return system.Root.Spawn(actor.PropsFromFunc(receive, actor.WithDispatcher(actor.NewSynchronizedDispatcher(300))))
}

// protoactor-dotnet#445.
func TestUpstreamDropsWhatAStoppedActorHasNotRead(t *testing.T) {
	system := newSystem()
	letters := 0
	system.EventStream.Subscribe(func(event any) {
		if letter, ok := event.(*actor.DeadLetterEvent); ok && letter.Message == "unread" {
			letters++
		}
	})
	read := 0
	pid := spawn(system, func(c actor.Context) {
		switch c.Message() {
		case "stop":
			c.Stop(c.Self())
			c.Send(c.Self(), "unread")
		case "unread":
			read++
		}
	})
	system.Root.Send(pid, "stop")
	require.Zero(t, read+letters, "no longer needed: remove the mailbox of internal/mailbox, and unread.go")
}

// protoactor-go#214.
func TestUpstreamActorOutlivesAPanicInStopping(t *testing.T) {
	told, alive := panicAtStop(t, func(message any) bool { _, ok := message.(*actor.Stopping); return ok })
	require.True(t, !told && alive, "no longer needed: remove the recovery in session_bug.go")
}

// protoactor-go#214.
func TestUpstreamTellsNobodyOfAnEndWithAPanic(t *testing.T) {
	told, _ := panicAtStop(t, func(message any) bool { _, ok := message.(*actor.Stopped); return ok })
	require.False(t, told, "no longer needed: remove the recovery in session_bug.go")
}

// panicAtStop stops an actor that panics at one of its last messages. It reports whether an
// actor that watches it is told of its end, and whether it still handles messages.
func panicAtStop(t *testing.T, at func(message any) bool) (told, alive bool) {
	system := newSystem()
	panicked := false
	pid := spawn(system, func(c actor.Context) {
		switch {
		case !panicked && at(c.Message()):
			panicked = true
			panic("a mistake")
		case c.Message() == "are you there?":
			alive = true
		}
	})
	spawn(system, func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			c.Watch(pid)
		case *actor.Terminated:
			told = true
		}
	})
	system.Root.Stop(pid)
	require.True(t, panicked)
	if _, ok := system.ProcessRegistry.GetLocal(pid.Id); ok {
		system.Root.Send(pid, "are you there?")
	}
	return told, alive
}

// protoactor-go#1145 is a data race in the same lines.
func TestUpstreamFutureWakesOneOfThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := newSystem()
		future := actor.NewFuture(system, time.Minute)
		woken := make(chan struct{}, 3)
		for range cap(woken) {
			go func() {
				_ = future.Wait()
				woken <- struct{}{}
			}()
		}
		synctest.Wait()
		system.Root.Send(future.PID(), "reply")
		synctest.Wait()
		require.Len(t, woken, 1, "no longer needed: remove the type Future")
		(*sync.Cond)(reflect.ValueOf(future).Elem().FieldByName("cond").UnsafePointer()).Broadcast()
	})
}

func TestUpstreamReversesStashedMessages(t *testing.T) {
	system := newSystem()
	starts := 0
	var got []int
	pid := spawn(system, func(c actor.Context) {
		switch msg := c.Message().(type) {
		case *actor.Started:
			starts++
		case string:
			panic("restart")
		case int:
			if starts == 1 {
				c.Stash() //nolint:forbidigo // this is about it
				return
			}
			got = append(got, msg)
		}
	})
	for i := range 3 {
		system.Root.Send(pid, i)
	}
	system.Root.Send(pid, "restart")
	require.Equal(t, []int{2, 1, 0}, got, "no longer needed: remove Stash from the forbidden names in .golangci.yml")
}
