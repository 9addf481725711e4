package mcpbridge_test

import (
	"fmt"
	"os"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// A server in a container without a network, and with one directory to read. Of the variables of this process it gets one
// key, by its own name. The container ends with its session, whatever the server in it does.
func ExampleCleanup() {
	server := mcpbridge.Server{
		Name: "notes", Command: "docker",
		Args: []string{
			"run", "--rm", "-i", "--init", "--name", "{session}",
			"--network=none", "-v", "/srv/notes:/notes:ro", "-e", "NOTES_KEY", "example/notes-mcp",
		},
		Env:     map[string]string{"NOTES_KEY": os.Getenv("NOTES_KEY")},
		Cleanup: mcpbridge.Cleanup{Command: "docker", Args: []string{"rm", "--force", "{session}"}},
	}
	fmt.Println(server.Validate(), server.Warnings(), server.InheritEnv)
	// Output: <nil> [] false
}
