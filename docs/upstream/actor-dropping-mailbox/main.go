// Command actor-dropping-mailbox shows that the mailbox of BoundedDropping runs for ever once it
// has dropped a message, because it counts what it has dropped as still to be read.
package main

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

const (
	rounds = 1000
	// wait is how long the rounds may take. Only a proof of the mended library needs it.
	wait = 10 * time.Second
)

// counter is a dispatcher that counts how often the mailbox looks for messages.
type counter struct{ looks atomic.Int64 }

func (c *counter) Schedule(run func()) { go run() }

func (c *counter) Throughput() int {
	c.looks.Add(1)
	return 300
}

func main() {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	busy, release, handled := make(chan struct{}), make(chan struct{}), make(chan struct{})
	dispatcher := new(counter)
	pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message() {
		case "work":
			close(busy)
			<-release
		case "last":
			close(handled)
		}
	}, actor.WithMailbox(actor.BoundedDropping(4)), actor.WithDispatcher(dispatcher)))
	system.Root.Send(pid, "work")
	<-busy
	for range 10 {
		system.Root.Send(pid, "dropped")
	}
	system.Root.Send(pid, "last")
	close(release)
	<-handled // and nobody sends anything from now on
	before := dispatcher.looks.Load()
	for timeout := time.After(wait); ; {
		select {
		case <-timeout:
			fmt.Printf("mended: the mailbox has looked %d times for messages since the last\n", dispatcher.looks.Load()-before)
			return
		case <-time.After(time.Millisecond):
		}
		if dispatcher.looks.Load()-before > rounds {
			fmt.Printf("still so: the idle mailbox has looked more than %d times for messages, and keeps a processor busy\n", rounds)
			return
		}
	}
}
