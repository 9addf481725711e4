// Command actor-stash-order shows that stashed messages come back in the reverse order, and
// without their senders, so that requests among them get no answer.
package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

func main() {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	starts := 0
	var got []int
	done := make(chan struct{})
	var senders int
	pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
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
			if c.Sender() != nil {
				senders++
			}
			if len(got) == 3 {
				close(done)
			}
		}
	}))
	for i := 1; i <= 3; i++ {
		system.Root.RequestFuture(pid, i, time.Minute) //nolint:forbidigo // a request has a sender
	}
	system.Root.Send(pid, "restart")
	<-done
	fmt.Printf("stashed: [1 2 3] with 3 senders; came back: %v with %d senders\n", got, senders)
	if got[0] != 1 || senders != 3 {
		fmt.Println("still so: stashed messages come back in reverse, without senders")
		return
	}
	fmt.Println("mended: stashed messages come back as they came")
}
