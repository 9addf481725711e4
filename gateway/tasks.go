package gateway

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Tasks have one form in protocol 2025-11-25, and another one in the extension of 2026-07-28. None is translated: a client has the
// tasks of servers of its own protocol, and does not see that others have any.

// The methods for tasks in the two forms, which the SDK does not know, and those that change nothing.
var (
	oldTaskMethods = []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel"}
	newTaskMethods = []string{"tasks/get", "tasks/update", "tasks/cancel"}
	taskMethods    = []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"}

	readingTaskMethods = []string{"tasks/get", "tasks/result", "tasks/list"}
)

// checkTasks returns the error for a request for tasks: the protocol of the client does not have the method, or the client has not
// declared the extension.
func checkTasks(r *mcpserver.Request) error {
	if !r.IsStateless() {
		if !slices.Contains(oldTaskMethods, r.Method) {
			return noMethod(r.Method)
		}
		return nil
	}
	if !slices.Contains(newTaskMethods, r.Method) {
		return noMethod(r.Method)
	}
	if mcpserver.ObjectOf(mcpserver.ObjectOf(r.Meta()[mcp.MetaKeyClientCapabilities])["extensions"])[mcpbridge.TasksExtension] == nil {
		needed, _ := json.Marshal(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{mcpbridge.TasksExtension: struct{}{}}}})
		return &jsonrpc.Error{
			Code: mcp.CodeMissingRequiredClientCapabilities, Data: needed,
			Message: "the client has not declared the extension " + mcpbridge.TasksExtension,
		}
	}
	return nil
}

// tasksOf returns the capability for tasks that a server has said of itself, if it is one for clients of its protocol, or nil.
func tasksOf(said mcpserver.Object, isNew bool) json.RawMessage {
	its := mcpserver.ObjectOf(said["capabilities"])
	switch {
	case isStateless(said) != isNew:
		return nil
	case isNew:
		return mcpserver.ObjectOf(its["extensions"])[mcpbridge.TasksExtension]
	}
	return its["tasks"]
}

// mayHaveTasks reports whether a server may have tasks for a client: nothing is known of it yet, or it has said so.
func mayHaveTasks(said mcpserver.Object, isNew bool) bool {
	return len(said) == 0 || tasksOf(said, isNew) != nil
}

// withoutTaskList returns what a server has said of itself, as if it did not list its tasks.
func withoutTaskList(said mcpserver.Object) mcpserver.Object {
	its := mcpserver.ObjectOf(said["capabilities"])
	if its["tasks"] == nil {
		return said
	}
	tasks := mcpserver.ObjectOf(its["tasks"])
	delete(tasks, "list")
	return maps.Clone(said).With("capabilities", its.With("tasks", tasks))
}

// offerTasks sets the capability for tasks in those that a client is told: what the servers have that have said this of themselves.
func offerTasks(can mcpserver.Object, said []mcpserver.Object, isNew bool) {
	var merged json.RawMessage
	for _, its := range said {
		if one := tasksOf(its, isNew); one != nil {
			merged = merge(merged, one)
		}
	}
	delete(can, "tasks")
	extensions := mcpserver.ObjectOf(can["extensions"])
	_, hadOne := extensions[mcpbridge.TasksExtension]
	delete(extensions, mcpbridge.TasksExtension)
	switch {
	case merged != nil && isNew:
		extensions[mcpbridge.TasksExtension] = merged
	case merged != nil:
		can["tasks"] = merged
	}
	if len(extensions) > 0 {
		can.With("extensions", extensions)
	} else if hadOne {
		delete(can, "extensions")
	}
}

// merge returns a value with the members of another one that it does not have, at any depth.
func merge(value, other json.RawMessage) json.RawMessage {
	if value == nil {
		return other
	}
	members, others := mcpserver.ObjectOf(value), mcpserver.ObjectOf(other)
	if len(others) == 0 {
		return value
	}
	merged := maps.Clone(others)
	for name, its := range members {
		merged[name] = merge(its, others[name])
	}
	data, _ := mcpserver.Encode(merged)
	return data
}
