// Package tasks has the tasks of SEP-2663, the extension "io.modelcontextprotocol/tasks" of protocol 2026-07-28.
//
// A server may answer tools/call with a task. Its client asks for the state of the task until it is over:
//
//	tools/call ──▶ working ◀──▶ input_required
//	                  └──────┬──────┘
//	                         ▼
//	        completed | failed | cancelled
//
// While a task is in the state input_required, its client answers the questions of the server with tasks/update. Each
// question has a key, and is answered once. tasks/cancel asks the server to end a task.
package tasks

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// ResultType is the resultType of a result that is a task.
const ResultType = "task"

// Status is the state of a task.
type Status string

// The states of a task. In the last three it is over.
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed"
	Failed        Status = "failed"
	Cancelled     Status = "cancelled"
)

// Task is a task as its server has described it. It is the result of a call that has become a task, and of [Get].
// Immutable.
type Task struct {
	messages.Receipt
	ID      string // a secret: whoever has it can read the result
	Status  Status
	Message string              // what the server says about the state, or empty
	Inputs  mcp.InputRequestMap // the questions that are open, by their keys
	Result  json.RawMessage     // of a task that is completed
	Error   *jsonrpc.Error      // of a task that has failed

	poll time.Duration // how often the server wants to be asked, or 0
}

// ErrCancelled is the cause of the failure of a call whose task the server has cancelled.
var ErrCancelled = errors.New("the task was cancelled")

const (
	// maxID is the longest id of a task, in bytes.
	maxID = 1 << 10
	// The server is asked for a task each second, unless it wants something else within these bounds.
	defaultPoll, minPoll, maxPoll = time.Second, 50 * time.Millisecond, time.Minute
)

// Decode decodes a task. If it is new, it has the state in which its server has created it: that may be one in which it is
// over, but its result or error comes with [Get].
func Decode(raw []byte, isNew bool) (*Task, error) {
	var wire struct {
		ID      string              `json:"taskId"`
		Status  Status              `json:"status"`
		Message string              `json:"statusMessage"`
		Poll    float64             `json:"pollIntervalMs"`
		Inputs  mcp.InputRequestMap `json:"inputRequests"`
		Result  json.RawMessage     `json:"result"`
		Error   *jsonrpc.Error      `json:"error"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return nil, err
	}
	t := &Task{ID: wire.ID, Status: wire.Status, Message: wire.Message, Inputs: wire.Inputs, Result: wire.Result, Error: wire.Error}
	t.poll = time.Duration(min(max(wire.Poll, 0), float64(maxPoll.Milliseconds()))) * time.Millisecond
	switch {
	case t.ID == "" || len(t.ID) > maxID:
		return nil, fmt.Errorf("its taskId has %d bytes; 1 to %d are accepted", len(t.ID), maxID)
	case !isNew && t.Status == Completed && len(t.Result) == 0:
		return nil, errors.New("it is completed, and has no result")
	case !isNew && t.Status == Failed && t.Error == nil:
		return nil, errors.New("it has failed, and has no error")
	}
	switch t.Status {
	case Working, InputRequired, Completed, Failed, Cancelled:
		return t, nil
	}
	return nil, fmt.Errorf("its status is not known (%.40q)", t.Status)
}

// IsOver reports whether the state of the task does not change any more.
func (t *Task) IsOver() bool { return t.Status != Working && t.Status != InputRequired }

// Pause returns how long to wait before the server is asked for the task again. It grows with the number of attempts
// that have failed since the last answer. A new task that is over already is asked for at once.
func (t *Task) Pause(failed int) time.Duration {
	if t.IsOver() && failed == 0 {
		return 0
	}
	pause := t.poll
	if pause == 0 {
		pause = defaultPoll
	}
	return min(max(pause, minPoll)<<min(failed, 10), maxPoll)
}

// Same reports whether another state of the task is the same for those who watch it.
func (t *Task) Same(other *Task) bool {
	return other != nil && t.Status == other.Status && t.Message == other.Message
}

// Get asks for the state of a task, which is its result. If the task is completed, the result is that of its call. If it
// has failed or was cancelled, the error says so.
type Get struct {
	messages.Header
	ID string // of the task
}

// Update answers questions of a task. Its result is an [messages.Ack].
type Update struct {
	messages.Header
	ID     string              // of the task
	Call   messages.Operation  // whose handler is asked
	Inputs mcp.InputRequestMap // the questions
}

// Cancel ends a task on the server. Its result is an [messages.Ack].
type Cancel struct {
	messages.Header
	ID string // of the task
}

// The methods of the extension.
const (
	MethodGet    = "tasks/get"
	MethodUpdate = "tasks/update"
	MethodCancel = "tasks/cancel"
)

// Operation is one of [Get], [Update] and [Cancel].
type Operation interface {
	messages.Operation
	// Task returns the id of the task.
	Task() string
}

// Method returns "tasks/get".
func (*Get) Method() string { return MethodGet }

// Task returns the id of the task.
func (m *Get) Task() string { return m.ID }

// Idempotent returns true.
func (*Get) Idempotent() bool { return true }

// Method returns "tasks/update".
func (*Update) Method() string { return MethodUpdate }

// Task returns the id of the task.
func (m *Update) Task() string { return m.ID }

// Idempotent returns true: the server ignores answers to questions that are answered.
func (*Update) Idempotent() bool { return true }

// Method returns "tasks/cancel".
func (*Cancel) Method() string { return MethodCancel }

// Task returns the id of the task.
func (m *Cancel) Task() string { return m.ID }

// Idempotent returns true.
func (*Cancel) Idempotent() bool { return true }
