package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/taskserver"
)

// A server turns a call into a task. The program that asked for it has ended when the task is over: the next one gets the
// result.
func ExampleConfig_tasks() {
	archive := taskserver.New() // its tool works for 2 s
	archive.Poll = 10 * time.Millisecond
	capabilities := &mcp.ClientCapabilities{}
	capabilities.AddExtension(mcpbridge.TasksExtension, nil)
	start := func(store mcpbridge.Store) *supervisor.Supervisor {
		sup, err := supervisor.Start(newSystem(), supervisor.Config{
			Servers:      []supervisor.Server{{Name: "archive", InMemory: archive.Process()}},
			Capabilities: capabilities, Store: store, DrainTimeout: time.Millisecond,
		})
		if err != nil {
			log.Fatal(err)
		}
		return sup
	}
	ctx, store := context.Background(), new(resume.Memory)

	sup := start(store)
	report := &messages.CallTool{Header: messages.To("archive", "user-7"), Params: &mcp.CallToolParams{Name: "report"}, Durable: true}
	report.ID = "report-2026-11"
	ended := make(chan error)
	go func() {
		_, err := sup.Client().Do(ctx, report)
		ended <- err
	}()
	for archive.Requests("tasks/get") == 0 { // it has no task yet
		time.Sleep(time.Millisecond)
	}
	sup.Stop(ctx)
	if failure, is := errors.AsType[*messages.Failure](<-ended); is {
		fmt.Println(failure.Code)
	}

	sup = start(store)
	defer sup.Stop(ctx)
	reply, err := sup.Client().Do(ctx, report)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.(*messages.ToolResult).Result.Content[0].(*mcp.TextContent).Text)
	// Output:
	// closed
	// worked
}
