package session

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/operations"
	"github.com/mcpactor/mcpactor/messages"
)

// onNotification sends progress to the subscriber of its operation, until the operation is
// answered, and any other notification to its subscribers and to the registry.
func (s *session) onNotification(msg *notificationReceived) {
	stamp := messages.Stamp{Key: s.key, Generation: s.last.generation, Time: time.Now(), Supervisor: s.cfg.Name}
	if msg.of != nil {
		msg.heard.Remove()
		for k := range s.calls.Unanswered() {
			if k.Op == msg.of {
				k.Hear(stamp.Time)
				stamp.Generation = k.Run.Generation
				*stampOf(msg.note) = stamp
				if to := k.Op.Head().Subscriber; to != nil {
					s.cfg.Post.Send(to, msg.note)
				}
			}
		}
		return
	}
	*stampOf(msg.note) = stamp
	switch note := msg.note.(type) {
	case *messages.ResourceUpdated:
		for _, subscriber := range s.subscribers.Subscribers(note.URI) {
			s.cfg.Post.Send(subscriber, note)
		}
	case *messages.ServerLog:
		if op, is := s.calls.OnlyOperation(); is && note.Operation.Method == "" {
			note.Operation = operations.RefTo(op)
		}
	}
	s.out.report(&contract.Notified{Of: s.out.of, Note: msg.note, Heard: msg.heard})
}

// stampOf returns the stamp of a notification.
func stampOf(note messages.Notification) *messages.Stamp {
	switch note := note.(type) {
	case *messages.ToolsChanged:
		return &note.Stamp
	case *messages.PromptsChanged:
		return &note.Stamp
	case *messages.ResourcesChanged:
		return &note.Stamp
	case *messages.ResourceUpdated:
		return &note.Stamp
	case *messages.ServerLog:
		return &note.Stamp
	case *messages.ElicitationCompleted:
		return &note.Stamp
	case *messages.CustomNotification:
		return &note.Stamp
	case *messages.Progress:
		return &note.Stamp
	}
	return nil
}
