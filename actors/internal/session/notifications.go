package session

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// onNotification sends progress to the subscriber of its operation, until the operation is
// answered, and any other notification to its subscribers and to the registry.
func (s *session) onNotification(msg *notificationReceived) {
	stamp := messages.Stamp{Key: s.key, Generation: s.generation, Time: time.Now(), Supervisor: s.cfg.Name}
	if msg.of != nil {
		msg.heard.Remove()
		for k := range s.calls.Unanswered() {
			if k.Op == msg.of {
				k.Hear(stamp.Time)
				stamp.Generation = k.Run.Generation
				msg.note.SetStamp(stamp)
				if to := k.Op.Head().Subscriber; to != nil {
					s.cfg.Post.Send(to, msg.note)
				}
			}
		}
		return
	}
	msg.note.SetStamp(stamp)
	switch note := msg.note.(type) {
	case *messages.ResourceUpdated:
		for _, subscriber := range s.subscribers.Subscribers(note.URI) {
			s.cfg.Post.Send(subscriber, note)
		}
	case *messages.ServerLog:
		if op, is := s.calls.OnlyOperation(); is && note.Operation.Method == "" {
			note.Operation = messages.RefTo(op)
		}
	}
	s.out.report(&contract.Notified{Of: s.out.of, Note: msg.note, Heard: msg.heard})
}
