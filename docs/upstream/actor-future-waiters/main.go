// Command actor-future-waiters shows that a reply wakes one of the goroutines that wait for a
// Future, and leaves the others waiting for ever: not even the timeout ends their wait.
package main

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

const (
	waiters = 3
	timeout = 500 * time.Millisecond
	// wait is how much longer than the timeout of the Future a goroutine may wait.
	wait = 500 * time.Millisecond
)

func main() {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	future := actor.NewFuture(system, timeout)
	woken := make(chan struct{}, waiters)
	for range waiters {
		go func() {
			_ = future.Wait()
			woken <- struct{}{}
		}()
	}
	for stacks := make([]byte, 1<<16); strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "sync.runtime_notifyListWait") < waiters; {
		runtime.Gosched()
	}
	system.Root.Send(future.PID(), "reply")
	count := 0
	for waited := time.After(timeout + wait); count < waiters; {
		select {
		case <-woken:
			count++
			continue
		case <-waited:
		}
		fmt.Printf("still so: the reply woke %d of %d goroutines\n", count, waiters)
		return
	}
	fmt.Printf("mended: the reply woke %d of %d goroutines\n", count, waiters)
}
