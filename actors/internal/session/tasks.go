package session

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// onTaskHeard notes the state of the task that a call has become. From then on the call may have run.
func (s *session) onTaskHeard(msg *contract.TaskHeard) {
	k, before := msg.Call, msg.Call.Task
	k.Task = msg.Task
	if k.Lost == nil {
		k.Lost = &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Sent: true, Detail: "the call has become a task, which could not be followed to its end"}
	}
	if k.Replied {
		if before == nil { // it was answered before it became a task
			s.cancelTask(k)
		}
		return
	}
	k.Hear(time.Now())
	if !k.Task.Same(before) {
		s.report(&contract.TaskChanged{Of: s.registration, Op: k.Op, Task: k.Task})
	}
}

// interruptTasks ends the runs of calls that follow tasks. They are run again on the next connection.
func (s *session) interruptTasks(which func(*contract.Call) bool) {
	for k := range s.running.All() {
		if k.Task != nil && !k.Replied && which(k) {
			k.Ctx.Cancel()
		}
	}
}

// maxMoot bounds the tasks that a session without a connection has to cancel.
const maxMoot = 64

// cancelTask cancels the task of a call that was answered before it is over, if it is one. The task of a durable call
// outlives the session.
func (s *session) cancelTask(k *contract.Call) {
	switch {
	case k.Task == nil || k.Task.IsOver() || s.drainOrder != nil && k.IsDurable():
	case s.conn == nil:
		if len(s.moot) < maxMoot {
			s.moot = append(s.moot, k.Task.ID)
		}
	default:
		conn, timeout, cancel := s.conn, s.limits.CloseTimeout, &tasks.Cancel{ID: k.Task.ID}
		cancel.Key, cancel.Trace, cancel.Attributes = k.Key, k.Op.Head().Trace, k.Op.Head().Attributes
		s.requests++
		s.cfg.Async(&s.mailbox, func() any {
			contract.CloseWithin(timeout, func(ctx context.Context) error { //nolint:errcheck // the server may cancel it or not
				_, err := conn.Do(messages.WithTrace(messages.WithAttributes(ctx, cancel.Attributes), cancel.Trace), cancel)
				return err
			})
			return &taskCancelled{}
		})
	}
}

// cancelMoot cancels the tasks of calls that were answered while there was no connection.
func (s *session) cancelMoot() {
	for _, id := range s.moot {
		s.cancelTask(&contract.Call{Op: &messages.CallTool{}, Key: s.key, Task: &tasks.Task{ID: id, Status: tasks.Working}})
	}
	s.moot = nil
}
