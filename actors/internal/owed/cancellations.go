package owed

import (
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/tasks"
)

// maxCancellations bounds the tasks that a session without a connection has to cancel.
const maxCancellations = 64

// Cancellations are the requests that wait for a connection, to cancel tasks whose calls were answered.
type Cancellations []*tasks.Cancel

// Add adds the request that cancels the task of a call which was answered before the task is over, if there is such a task.
// That of a durable call outlives a session that drains.
func (c *Cancellations) Add(k *contract.Call, drains bool) {
	if k.Run.Task == nil || k.Run.Task.IsOver() || drains && k.IsDurable() || len(*c) == maxCancellations {
		return
	}
	cancel := &tasks.Cancel{ID: k.Run.Task.ID}
	cancel.Key, cancel.Trace, cancel.Attributes = k.Key, k.Op.Head().Trace, k.Op.Head().Attributes
	*c = append(*c, cancel)
}
