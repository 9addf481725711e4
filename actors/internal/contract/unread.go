package contract

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// AnswerUnread answers a message that an actor has not read before it stopped.
func (cfg *Config) AnswerUnread(msg any, sender *actor.PID) {
	switch msg := msg.(type) {
	case *Call:
		cfg.Post.Send(msg.Caller, msg.Failure(messages.CodeClosed, "the session was stopped"))
	case *CallsHandedBack:
		for _, k := range msg.Calls {
			cfg.AnswerUnread(k, nil)
		}
	case *CallsTimedOut:
		for _, k := range msg.Calls {
			cfg.AnswerUnread(k, nil)
		}
	default:
		protocol.Answer(cfg.Post, cfg.Name, msg, sender)
	}
}
