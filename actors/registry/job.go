package registry

import (
	"github.com/mcpactor/mcpactor/messages"
)

// job is what the registry does in several steps. The first one is taken at once, each other one by a message of its own: calls of
// other keys are handled between two of them.
type job struct {
	// step handles at most [contract.WalkStep] sessions, scopes or calls. It reports whether there are more.
	step func() (more bool)
	// fail answers those who wait for the job, when a step has panicked or the registry has stopped. nil if nobody waits.
	fail func(code messages.Code, detail string)
}

// do takes the next step of a job.
func (r *registry) do(j *job) {
	outer := r.running
	r.running = j
	if j.step() {
		r.mailbox.PostUserMessage(j)
	}
	r.running = outer
}
