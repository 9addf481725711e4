// Package operations knows all operations of package messages.
package operations

import (
	"iter"

	"github.com/mcpactor/mcpactor/messages"
)

// all has a row for each operation, with its result.
var all = []struct {
	op     messages.Operation
	result messages.Result
}{
	{new(messages.CallTool), new(messages.ToolResult)},
	{new(messages.ListTools), new(messages.ToolList)},
	{new(messages.ListResources), new(messages.ResourceList)},
	{new(messages.ListResourceTemplates), new(messages.ResourceTemplateList)},
	{new(messages.ReadResource), new(messages.ResourceContents)},
	{new(messages.ListPrompts), new(messages.PromptList)},
	{new(messages.GetPrompt), new(messages.Prompt)},
	{new(messages.Complete), new(messages.Completion)},
	{new(messages.Subscribe), new(messages.Ack)},
	{new(messages.Unsubscribe), new(messages.Ack)},
	{new(messages.SetLogLevel), new(messages.Ack)},
	{new(messages.SetRoots), new(messages.Ack)},
	{new(messages.Ping), new(messages.Ack)},
	{new(messages.Open), new(messages.SessionInfo)},
	{new(messages.Custom), new(messages.CustomResult)},
}

// All yields all operations, each with its result. Both are empty and read-only: they stand for their types.
func All() iter.Seq2[messages.Operation, messages.Result] {
	return func(yield func(messages.Operation, messages.Result) bool) {
		for _, row := range all {
			if !yield(row.op, row.result) {
				return
			}
		}
	}
}

// RefTo returns the name of an operation.
func RefTo(op messages.Operation) messages.OperationRef {
	return messages.OperationRef{ID: op.RequestID(), Method: op.Method(), Target: messages.TargetOf(op)}
}
