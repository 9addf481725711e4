// Package jobs does, in the actor of the registry, what takes several steps or waits for a goroutine.
package jobs

import (
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/messages"
)

// Jobs is used by the actor of the registry only.
type Jobs struct {
	cfg     *contract.Config
	mailbox *mailbox.Mailbox // of the registry
	running *Job             // whose step this is, or nil
	awaited int              // goroutines whose work has not returned
}

// Job is what is done in several steps. Calls of other keys are handled between two of them.
type Job struct {
	// Step handles at most [contract.WalkStep] sessions, scopes or calls. It reports whether there are more.
	Step func() (more bool)
	// Fail answers those who wait for the job, when a step has panicked or the registry has stopped. nil if nobody waits.
	Fail func(code messages.Code, detail string)
}

// returned brings what follows from work that was done in another goroutine.
type returned struct{ then func() }

// New returns the jobs of a registry, of which there are none yet.
func New(cfg *contract.Config, m *mailbox.Mailbox) *Jobs { return &Jobs{cfg: cfg, mailbox: m} }

// Do takes the next step of a job. Each further one is taken by a message of its own.
func (j *Jobs) Do(job *Job) {
	outer := j.running
	j.running = job
	if job.Step() {
		j.Later(job)
	}
	j.running = outer
}

// Later takes the next step of a job by a message of its own.
func (j *Jobs) Later(job *Job) { j.mailbox.PostUserMessage(job) }

// Await runs work in another goroutine, and then what that returns in the registry, which does not stop before.
func (j *Jobs) Await(work func() (then func())) {
	j.awaited++
	j.cfg.Async(j.mailbox, func() any { return &returned{work()} })
}

// Awaited returns how many goroutines have not returned.
func (j *Jobs) Awaited() int { return j.awaited }

// Receive handles a message of jobs. It reports whether it was one.
func (j *Jobs) Receive(msg any) bool {
	switch msg := msg.(type) {
	case *Job:
		j.Do(msg)
	case *returned:
		j.awaited--
		msg.then()
	default:
		return false
	}
	return true
}

// Panicked ends the job whose step has panicked, if it was one. It reports whether those who wait for it were answered.
func (j *Jobs) Panicked(code messages.Code, detail string) (answered bool) {
	job := j.running
	j.running = nil
	return job.fail(code, detail)
}

// Unread ends the job of a message that the registry has not read before it stopped. It reports whether it had one.
func (*Jobs) Unread(msg any, code messages.Code, detail string) bool {
	job, is := msg.(*Job)
	if is {
		job.fail(code, detail)
	}
	return is
}

// fail answers those who wait for a job, if there are any. The job may be nil.
func (job *Job) fail(code messages.Code, detail string) (answered bool) {
	if job == nil || job.Fail == nil {
		return false
	}
	job.Fail(code, detail)
	return true
}
