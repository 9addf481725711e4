package toolset_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// A program starts again, and shows what waits for an approval: this process does not know the calls, but its store does.
func ExampleToolset_Pending() {
	ctx := context.Background()
	store := new(resume.Memory) // in a program, one of package resume that outlives the process
	for _, call := range []func(*toolset.Toolset){propose, decide} {
		server := mcpbridge.Server{Name: "notes", InMemory: newOne("notes", "read", "Reads a note.")}
		sup, err := supervisor.Start(newSystem(), supervisor.Config{CallStore: store, Servers: []mcpbridge.Server{server}})
		if err != nil {
			log.Fatal(err)
		}
		tools, err := toolset.New(nil, sup, toolset.Config{
			Scope: "conversation-1", Servers: []toolset.Filter{{Name: "notes"}},
			Policy: &toolset.Policy{Decide: func(toolset.Proposal) toolset.Decision {
				return toolset.Decision{Verdict: toolset.Defer}
			}},
		})
		if err != nil {
			log.Fatal(err)
		}
		call(tools)
		tools.Close()
		if err := sup.Stop(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// {"path":"plan.txt"}: [tool error]
	// The call was refused: the call was not approved: it is private. The tool did not run. Do not try again unless the user asks for it.
	// {"path":"list.txt"}: Done.
	// {"path":"old.txt"}: cancelled
	// 0 calls wait
}

// propose calls tools for a model.
func propose(tools *toolset.Toolset) {
	for _, path := range []string{"plan.txt", "list.txt", "old.txt"} {
		_, _ = tools.Call(context.Background(), "notes__read", map[string]string{"path": path}) // the error has the Pending
	}
}

// decide answers the calls that wait, or cancels them.
func decide(tools *toolset.Toolset) {
	ctx := context.Background()
	pending, err := tools.Pending(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for i, p := range pending {
		answer := toolset.Decision{Verdict: toolset.Allow}
		switch i {
		case 0:
			answer = toolset.Decision{Verdict: toolset.Deny, Reason: "it is private"}
		case 2:
			if err := tools.Cancel(ctx, p.ID); err != nil { // without an error it has not run, and will not
				log.Fatal(err)
			}
			fmt.Printf("%s: cancelled\n", p.Arguments)
			continue
		}
		result, err := tools.Answer(ctx, p.ID, p.Digest, answer)
		fmt.Printf("%s: %s\n", p.Arguments, tools.Outcome(result, err).Text())
	}
	if pending, err = tools.Pending(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(pending), "calls wait")
}
