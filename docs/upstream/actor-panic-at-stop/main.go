// Command actor-panic-at-stop shows that an actor that panics while it handles Stopping runs on,
// and that nobody is told of the end of one that panics while it handles Stopped.
package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// wait is how long the news of an end may take. Its length matters only when this is mended.
const wait = 500 * time.Millisecond

func quiet(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }

// watched stops an actor that panics when it handles one of its messages. It reports whether who
// watches the actor is told of its end, and whether the actor still answers.
func watched(panicsAt func(message any) bool) (told, alive bool) {
	system := actor.NewActorSystem(actor.WithLoggerFactory(quiet))
	panicked, ended := make(chan struct{}, 1), make(chan struct{}, 2)
	answers := make(chan struct{}, 1)
	first := true
	pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if panicsAt(c.Message()) && first {
			first = false
			panicked <- struct{}{}
			panic("a mistake")
		}
		if _, ok := c.Message().(string); ok {
			answers <- struct{}{}
		}
	}))
	watching := make(chan struct{})
	system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			c.Watch(pid)
			close(watching)
		case *actor.Terminated:
			ended <- struct{}{}
		}
	}))
	<-watching
	system.Root.Send(pid, "are you there?")
	<-answers
	system.Root.Stop(pid)
	<-panicked
	select {
	case <-ended:
		told = true
	case <-time.After(wait):
	}
	system.Root.Send(pid, "are you there?")
	select {
	case <-answers:
		alive = true
	case <-time.After(wait):
	}
	return told, alive
}

func main() {
	toldOfStopping, alive := watched(func(message any) bool { _, ok := message.(*actor.Stopping); return ok })
	toldOfStopped, _ := watched(func(message any) bool { _, ok := message.(*actor.Stopped); return ok })
	fmt.Printf("panic in Stopping: the actor is told to stop, and still answers: %v; who watches it is told: %v\n", alive, toldOfStopping)
	fmt.Printf("panic in Stopped: who watches it is told: %v\n", toldOfStopped)
	if toldOfStopping && toldOfStopped {
		fmt.Println("mended: who watches an actor is told of its end")
		return
	}
	fmt.Println("still so: a panic at the end keeps an actor, or its end is told to nobody")
}
