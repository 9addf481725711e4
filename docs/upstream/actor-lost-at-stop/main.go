// Command actor-lost-at-stop shows that messages which an actor has not read when it stops are
// discarded without a dead letter, so that the sender of a request waits for its timeout.
package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

const requests = 10

func main() {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	deadLetters := make(chan any, 2*requests)
	system.EventStream.Subscribe(func(event any) {
		if letter, ok := event.(*actor.DeadLetterEvent); ok {
			deadLetters <- letter.Message
		}
	})
	busy, release := make(chan struct{}), make(chan struct{})
	pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case int:
			c.Respond("done")
		case string:
			close(busy)
			<-release
			c.Stop(c.Self())
		}
	}))
	system.Root.Send(pid, "work")
	<-busy
	var futures []*actor.Future
	for i := range requests {
		futures = append(futures, system.Root.RequestFuture(pid, i, 200*time.Millisecond)) //nolint:forbidigo // this is about it
	}
	close(release)
	timeouts := 0
	for _, future := range futures {
		if _, err := future.Result(); err == actor.ErrTimeout { //nolint:errorlint // it is not wrapped
			timeouts++
		}
	}
	fmt.Printf("%d requests before the stop: %d timeouts, %d dead letters\n", requests, timeouts, len(deadLetters))
	if timeouts > 0 && len(deadLetters) == 0 {
		fmt.Println("still so: messages that an actor has not read are lost without a dead letter")
		return
	}
	fmt.Println("mended: each message is answered or a dead letter")
}
