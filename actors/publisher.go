package actors

import (
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
)

// publisher puts events on the EventStream, in order. The stream runs its
// handlers in the goroutine of who publishes: theirs must not be the registry's.
type publisher struct {
	logger zerolog.Logger
}

// Receive publishes every message that is not about the actor's own life.
func (p *publisher) Receive(c actor.Context) {
	switch event := c.Message().(type) {
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		if msg, ok := event.(*said); ok {
			event = msg.note
			defer c.Send(c.Parent(), &published{msg.of})
		}
		defer func() {
			if r := recover(); r != nil {
				p.logger.Error().Type("event", event).Interface("reason", r).Bytes("stack", debug.Stack()).Msg("event handler panicked")
			}
		}()
		c.ActorSystem().EventStream.Publish(event)
	}
}
