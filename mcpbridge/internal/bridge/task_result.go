package bridge

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/results"
	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// becameTask is what a call returns, as an error of the SDK, that its server has turned into a task.
type becameTask struct{ *tasks.Task }

// Error says so.
func (*becameTask) Error() string { return "the call has become a task" }

// taskIn returns the task that is the result of a request with this method, or nil. It is an error if there is a task that
// cannot be followed. Where tasks are not declared, a task is no result at all: see [results.Check].
func taskIn(raw []byte, method string, declared bool) error {
	if !declared || method != rpc.MethodCallTool || !results.IsOfType(raw, tasks.ResultType) {
		return nil
	}
	task, err := tasks.Decode(raw, true)
	if err != nil {
		return wrongTask(err)
	}
	return &becameTask{task}
}

// wrongTask is the error for a task that cannot be decoded.
func wrongTask(err error) error {
	return &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: "the task cannot be followed: " + redact.Clean(err.Error()), Err: err}
}

// declaresTasks reports whether capabilities say that calls may become tasks.
func declaresTasks(capabilities *mcp.ClientCapabilities) bool {
	_, declared := capabilities.Extensions[mcpbridge.TasksExtension]
	return declared
}
