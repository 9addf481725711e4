package owed

import (
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/messages"
)

// maxCancellations bounds the tasks that a session without a connection has to cancel.
const maxCancellations = 64

// Cancellations are the tasks that the next connection cancels. Their calls were answered while there was no connection.
type Cancellations struct{ ids []string }

// Cancel returns the request that cancels the task of a call that was answered before the task is over, or nil. The task
// of a durable call outlives the session. Without a connection, the request waits for the next one.
func (m *Cancellations) Cancel(k *contract.Call, isConnected, drains bool) *tasks.Cancel {
	switch {
	case k.Run.Task == nil || k.Run.Task.IsOver() || drains && k.IsDurable():
		return nil
	case !isConnected:
		if len(m.ids) < maxCancellations {
			m.ids = append(m.ids, k.Run.Task.ID)
		}
		return nil
	}
	cancel := &tasks.Cancel{ID: k.Run.Task.ID}
	cancel.Key, cancel.Trace, cancel.Attributes = k.Key, k.Op.Head().Trace, k.Op.Head().Attributes
	return cancel
}

// Take returns the requests that have waited for a connection.
func (m *Cancellations) Take(key messages.Key) (all []*tasks.Cancel) {
	for _, id := range m.ids {
		cancel := &tasks.Cancel{ID: id}
		cancel.Key = key
		all = append(all, cancel)
	}
	m.ids = nil
	return all
}
