package subscribers

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// maxUntaken is how many lines are sent to a subscriber that it has not handled yet.
const maxUntaken = 64

// Tail has the stderr of a server for a subscriber. What the subscriber cannot take yet
// waits in Stderr, which drops lines rather than letting the server wait.
type Tail struct {
	Key    messages.Key
	Stderr mcpbridge.Stderr
	Ready  func() // tells the session that Stderr has lines

	to      *actor.PID // the subscriber, or nil
	untaken int        // lines that were sent, and not handled yet
}

// LineTaken is what the subscriber's actor system answers when it has handled a
// [messages.StderrLine].
type LineTaken interface{ TakenBy() *actor.PID }

// follow replaces the subscriber.
func (t *Tail) follow(subscriber *actor.PID) {
	t.to, t.untaken = subscriber, 0
	if subscriber == nil {
		t.Stderr.Follow(nil)
		return
	}
	t.Stderr.Follow(t.Ready)
}

// take returns the lines that the subscriber can take.
func (t *Tail) take() (lines []*messages.StderrLine) {
	if t.to == nil {
		return nil
	}
	for _, line := range t.Stderr.Take(maxUntaken - t.untaken) {
		t.untaken++
		lines = append(lines, &messages.StderrLine{Key: t.Key, Line: line.Text, Dropped: line.Dropped})
	}
	return lines
}

// taken notes that a subscriber has handled a line, and reports whether that makes room for the next one.
func (t *Tail) taken(by *actor.PID) bool {
	if t.untaken == 0 || !contract.SamePID(by, t.to) {
		return false
	}
	t.untaken--
	return true
}
