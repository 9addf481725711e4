package session

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// maxUntaken is how many lines are sent to a subscriber that it has not handled yet.
const maxUntaken = 64

// tail sends the stderr of a server to a subscriber. What the subscriber cannot take yet
// waits in stderr, which drops lines rather than letting the server wait.
type tail struct {
	stderr     mcpbridge.Stderr
	subscriber *actor.PID // or nil
	untaken    int        // lines that were sent, and not handled yet
}

// lineTaken is what the subscriber's actor system answers when it has handled a
// [messages.StderrLine].
type lineTaken interface{ TakenBy() *actor.PID }

// onTail replaces the subscriber of the tail.
func (s *session) onTail(subscriber *actor.PID) {
	if before := s.tail.subscriber; before != nil && !s.settings.HasSubscriber(before) {
		s.cfg.Post.Unwatch(before, s.self)
	}
	s.tail.subscriber, s.tail.untaken = subscriber, 0
	if subscriber == nil {
		s.tail.stderr.Follow(nil)
		return
	}
	s.cfg.Post.Watch(subscriber, s.self)
	self := &s.mailbox
	s.tail.stderr.Follow(func() { self.PostUserMessage(&stderrReady{}) })
}

// onSubscriberTerminated ends what a subscriber has subscribed to.
func (s *session) onSubscriberTerminated(who *actor.PID) {
	s.settings.RemoveSubscriber(who)
	if s.tail.subscriber != nil && contract.SamePID(s.tail.subscriber, who) {
		s.tail.stderr.Follow(nil)
		s.tail.subscriber = nil
	}
}

// onLineTaken makes room for the next line.
func (s *session) onLineTaken(msg lineTaken) {
	if s.tail.untaken > 0 && contract.SamePID(msg.TakenBy(), s.tail.subscriber) {
		s.tail.untaken--
		s.sendLines()
	}
}

// sendLines sends the lines that the subscriber can take.
func (s *session) sendLines() {
	if s.tail.subscriber == nil {
		return
	}
	for _, line := range s.tail.stderr.Take(maxUntaken - s.tail.untaken) {
		s.tail.untaken++
		s.cfg.Post.Request(s.tail.subscriber, &messages.StderrLine{Key: s.key, Line: line.Text, Dropped: line.Dropped}, s.self)
	}
}

// endTail sends the last lines, and ends the tail.
func (s *session) endTail() {
	s.sendLines()
	s.onTail(nil)
}
