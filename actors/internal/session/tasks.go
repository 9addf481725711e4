package session

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// onTaskHeard notes the state of the task that a call has become. From then on the call may have run.
func (s *session) onTaskHeard(msg *contract.TaskHeard) {
	k, before := msg.Call, msg.Call.Run.Task
	k.Run.Task = msg.Task
	if k.Run.Lost == nil {
		k.Run.Lost = &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Sent: true, Detail: "the call has become a task, which could not be followed to its end"}
	}
	if k.Run.Replied {
		if before == nil { // it was answered before it became a task
			s.cancelTask(k)
		}
		return
	}
	k.Hear(time.Now())
	if !k.Run.Task.Same(before) {
		s.out.report(&contract.TaskChanged{Of: s.out.of, Op: k.Op, Task: k.Run.Task})
	}
}

// cancelTask cancels the task that an answered call has become, if that is not over: now, or on the next connection.
func (s *session) cancelTask(k *contract.Call) {
	s.requests.cancellations.Add(k, s.drainOrder != nil)
	s.requests.cancelTasks(s.conns.Current, s.limits.CloseTimeout)
}
