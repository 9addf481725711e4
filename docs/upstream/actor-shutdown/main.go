// Command actor-shutdown shows that ActorSystem.Shutdown stops no actor, and that a second call
// panics.
package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

func main() {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	stopped, answers := make(chan struct{}), make(chan struct{}, 1)
	pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Stopped:
			close(stopped)
		case string:
			answers <- struct{}{}
		}
	}))
	system.Shutdown()
	system.Root.Send(pid, "are you there?")
	answered := false
	select {
	case <-answers:
		answered = true
	case <-stopped:
	case <-time.After(5 * time.Second):
	}
	second := func() (reason any) {
		defer func() { reason = recover() }()
		system.Shutdown()
		return nil
	}()
	fmt.Printf("after Shutdown an actor answers: %v; a second Shutdown panics: %v\n", answered, second)
	if answered || second != nil {
		fmt.Println("still so: Shutdown stops no actor, or panics when it is called again")
		return
	}
	fmt.Println("mended: Shutdown stops the actors, and may be called again")
}
