package registry

import (
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// job is what the registry does in several steps. Each step is a message, so that calls of other keys are handled between
// two of them.
type job struct {
	// step handles at most [contract.WalkStep] sessions, scopes or calls. It reports whether there are more.
	step func() (more bool)
	// fail answers those who wait for the job, when a step has panicked or the registry has stopped. nil if nobody waits.
	fail func(code messages.Code, detail string)
}

// do takes the next step of a job.
func (r *registry) do(j *job) {
	r.running = j
	if j.step() {
		r.mailbox.PostUserMessage(j)
	}
	r.running = nil
}

// cursor goes through the sessions of some servers in steps. It visits no session that was added after it was made.
type cursor struct {
	next []*registration // of each server
	upTo uint64          // the serial of the last session
}

// step visits the next sessions. It reports whether there are more.
func (c *cursor) step(visit func(reg *registration)) (more bool) {
	for n := 0; n < contract.WalkStep && len(c.next) > 0; n++ {
		last := len(c.next) - 1
		reg := c.next[last]
		if reg == nil || reg.serial > c.upTo {
			c.next = c.next[:last]
			continue
		}
		c.next[last] = reg.newer
		if !reg.removed() {
			visit(reg)
		}
	}
	return len(c.next) > 0
}
