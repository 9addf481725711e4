package relay

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dispatch"
)

// newTestPost returns a Post in a new actor system, whose dead letters are published.
func newTestPost() (*Post, *actor.ActorSystem) {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	events := New(maxLetters, func(event any) { system.EventStream.Publish(event) }, nil, nil)
	return NewPost(system, events, nil), system
}

// stuck is a process that blocks until it is released, and keeps what it gets.
type stuck struct {
	release chan struct{}
	mu      sync.Mutex
	got     []any
}

func (s *stuck) SendUserMessage(_ *actor.PID, message any) { s.take(message) }
func (s *stuck) SendSystemMessage(_ *actor.PID, m any)     { s.take(m) }
func (*stuck) Stop(*actor.PID)                             {}

func (s *stuck) take(message any) {
	<-s.release
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, message)
}

func (s *stuck) all() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got
}

// hooked is a middleware of a mailbox that blocks the sender.
type hooked struct{ release chan struct{} }

func (hooked) MailboxStarted()     {}
func (h hooked) MessagePosted(any) { <-h.release }
func (hooked) MessageReceived(any) {}
func (hooked) MailboxEmpty()       {}

func TestOnlyMailboxesThatQueueArePrompt(t *testing.T) {
	_, system := newTestPost()
	require.True(t, usual.known, "this version of Proto.Actor has another mailbox: adapt the layout")
	release := make(chan struct{})
	close(release)
	spawn := func(opts ...actor.PropsOption) actor.Process {
		pid := system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, opts...))
		process, there := system.ProcessRegistry.Get(pid)
		require.True(t, there)
		return process
	}
	require.True(t, isPrompt(spawn()))
	require.True(t, isPrompt(spawn(actor.WithMailbox(actor.UnboundedLockfree()))))
	require.True(t, isPrompt(spawn(actor.WithDispatcher(new(dispatch.Dispatcher)))))
	require.False(t, isPrompt(spawn(actor.WithMailbox(actor.Unbounded(hooked{release})))))
	require.False(t, isPrompt(spawn(actor.WithMailbox(actor.Bounded(1)))))
	require.False(t, isPrompt(spawn(actor.WithDispatcher(actor.NewSynchronizedDispatcher(1)))))
	require.False(t, isPrompt(&stuck{}))
	future := actor.NewFuture(system, time.Minute)
	process, _ := system.ProcessRegistry.Get(future.PID())
	require.False(t, isPrompt(process))
	system.Root.Send(future.PID(), nil)
}

func BenchmarkSendToAnActor(b *testing.B) {
	post, system := newTestPost()
	pid := system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
	message := any(&struct{ int }{})
	b.Run("by=engine", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			system.Root.Send(pid, message)
		}
	})
	b.Run("by=post", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			post.Send(pid, message)
		}
	})
}

// quick is a process that takes a message at once, which Post cannot know.
type quick struct{ stuck }

func (*quick) SendUserMessage(*actor.PID, any) {}

func BenchmarkSendToAProcess(b *testing.B) {
	post, system := newTestPost()
	pid, _ := system.ProcessRegistry.Add(new(quick), "quick")
	message := any(&struct{ int }{})
	b.ReportAllocs()
	for b.Loop() {
		post.Send(pid, message)
		post.Flush(b.Context())
	}
}

func TestAProcessThatBlocksDelaysNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		post, system := newTestPost()
		blocked := &stuck{release: make(chan struct{})}
		free := &stuck{release: make(chan struct{})}
		close(free.release)
		to, _ := system.ProcessRegistry.Add(blocked, "blocked")
		other, _ := system.ProcessRegistry.Add(free, "free")
		for i := range 100 {
			post.Send(to, i)
			post.Send(other, i)
		}
		synctest.Wait()
		require.Len(t, free.all(), 100)
		require.Empty(t, blocked.all())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.False(t, post.Flush(ctx))
		close(blocked.release)
		require.True(t, post.Flush(t.Context()))
		require.Equal(t, free.all(), blocked.all(), "in their order")
		for i, message := range free.all() {
			require.Equal(t, i, message)
		}
		time.Sleep(2 * time.Second) // Proto.Actor's throttle of dead letters
	})
}

func TestProcessesThatBlockTakeNothingFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		post, system := newTestPost()
		const many = 2000
		blocked, free := &stuck{release: make(chan struct{})}, &stuck{release: make(chan struct{})}
		close(free.release)
		before := runtime.NumGoroutine()
		for range many {
			pid, _ := system.ProcessRegistry.Add(blocked, system.ProcessRegistry.NextId())
			post.Send(pid, "hello")
		}
		flooded, _ := system.ProcessRegistry.Add(blocked, "flooded")
		post.Send(flooded, "hello")
		synctest.Wait()
		for range maxQueued + 10 {
			post.Send(flooded, "hello")
		}
		require.EqualValues(t, 10, post.Dropped())
		other, _ := system.ProcessRegistry.Add(free, "other")
		post.Send(other, "hello")
		synctest.Wait()
		require.Len(t, free.all(), 1)
		require.EqualValues(t, 10, post.Dropped())
		require.LessOrEqual(t, runtime.NumGoroutine(), before+many+10) // others of this process may begin or end
		close(blocked.release)
		require.True(t, post.Flush(t.Context()))
		require.Len(t, blocked.all(), many+1+maxQueued)
		time.Sleep(2 * time.Second)
	})
}

func TestAllProcessesOfAnAddressElsewhereShareOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		post, system := newTestPost()
		blocked := &stuck{release: make(chan struct{})}
		system.ProcessRegistry.RegisterAddressResolver(func(*actor.PID) (actor.Process, bool) { return blocked, true })
		before := runtime.NumGoroutine()
		for i := range 1000 {
			post.Send(actor.NewPID("elsewhere:1", system.ProcessRegistry.NextId()), i)
		}
		synctest.Wait()
		require.LessOrEqual(t, runtime.NumGoroutine(), before+10)
		close(blocked.release)
		require.True(t, post.Flush(t.Context()))
		require.Len(t, blocked.all(), 1000)
		for i, message := range blocked.all() {
			require.Equal(t, i, message)
		}
		time.Sleep(2 * time.Second)
	})
}

func TestAProcessThatEndsItsGoroutineGetsTheNextMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		post, system := newTestPost()
		p := &ending{}
		pid, _ := system.ProcessRegistry.Add(p, "ending")
		post.Send(pid, "first")
		post.Send(pid, "second")
		require.True(t, post.Flush(t.Context()))
		require.Equal(t, []any{"first", "second"}, p.got)
		time.Sleep(2 * time.Second)
	})
}

// ending is a process that ends the goroutine that it runs in.
type ending struct{ stuck }

func (e *ending) SendUserMessage(_ *actor.PID, message any) {
	e.got = append(e.got, message)
	runtime.Goexit()
}

func TestADeadLetterIsPublishedOffTheGoroutineOfTheSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		post, system := newTestPost()
		release := make(chan struct{})
		letters := 0
		subscription := system.EventStream.Subscribe(func(event any) {
			if letter, is := event.(*actor.DeadLetterEvent); is && letter.PID.Id == "gone" {
				<-release
				letters++
			}
		})
		defer system.EventStream.Unsubscribe(subscription)
		gone := actor.NewPID("nonhost", "gone")
		for range maxLetters + 100 {
			post.Send(gone, "hello") // does not block
		}
		require.True(t, post.Gone(gone))
		close(release)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.InDelta(t, maxLetters, letters, 1, "the rest was dropped")
	})
}

func TestTheEndOfAProcessIsToldAlsoWhenItHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		post, system := newTestPost()
		ended := make(chan *actor.Terminated, 10)
		watcher := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if msg, is := c.Message().(*actor.Terminated); is {
				ended <- msg
			}
		}))
		require.False(t, post.Watch(actor.NewPID("nonhost", "gone"), watcher))
		require.Equal(t, "gone", (<-ended).Who.Id)
		require.False(t, post.Watch(actor.NewPID("elsewhere:1", "gone"), watcher))
		require.Equal(t, "elsewhere:1", (<-ended).Who.Address)
		system.ProcessRegistry.RegisterAddressResolver(func(*actor.PID) (actor.Process, bool) { return nil, false })
		require.True(t, post.Watch(actor.NewPID("elsewhere:1", "gone"), watcher), "it may be there")
		require.Equal(t, "elsewhere:1", (<-ended).Who.Address)

		mortal := system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
		require.True(t, post.Watch(mortal, watcher))
		synctest.Wait()
		system.Root.Stop(mortal)
		require.Equal(t, mortal.Id, (<-ended).Who.Id)

		unwatched := system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
		require.True(t, post.Watch(unwatched, watcher))
		post.Unwatch(unwatched, watcher)
		synctest.Wait()
		system.Root.Stop(unwatched)
		time.Sleep(2 * time.Second)
		require.Empty(t, ended)
	})
}

func TestAPanicOfAProcessIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, system := newTestPost()
		reasons := make(chan any, 1)
		post := NewPost(system, New(1, func(any) {}, nil, nil), func(_, reason any, _ []byte) { reasons <- reason })
		broken := &stuck{release: make(chan struct{})}
		close(broken.release)
		pid, _ := system.ProcessRegistry.Add(panicking{broken}, "panicking")
		post.Send(pid, "hello")
		require.Equal(t, "hello", <-reasons)
		require.True(t, post.Flush(t.Context()))
		time.Sleep(2 * time.Second)
	})
}

// panicking is a process that panics with each message.
type panicking struct{ *stuck }

func (panicking) SendUserMessage(_ *actor.PID, message any) { panic(message) }
