package toolset_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/pin"
	"github.com/mcpactor/mcpactor/toolset"
)

func ExamplePolicy_accept() {
	ctx := context.Background()
	system, sup := newOffice("notes", "calendar")
	defer sup.Stop(ctx)
	file, done := lockFile()
	defer done()

	lock, err := pin.Read(file)
	if err != nil {
		log.Fatal(err)
	}
	policy := &toolset.Policy{Accept: func(t *toolset.Tool) error { return lock.Tool(t.Server, t.Original, t.Digest) }}
	tools, err := toolset.New(system, sup, toolset.Config{Servers: []toolset.Filter{{Name: "*"}}, Policy: policy})
	if err != nil {
		log.Fatal(err)
	}
	defer tools.Close()

	set, err := tools.Tools(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, tool := range set.Tools {
		fmt.Println(tool.Name)
	}
	for _, left := range set.LeftOut {
		fmt.Println(left.Key.Server, left.Target, left.Code)
	}
	// Output:
	// calendar__read
	// notes read refused
}

// lockFile writes a lock file with another definition of the notes' tool than the one that the server has.
func lockFile() (file string, done func()) {
	folder, err := os.MkdirTemp("", "pins")
	if err != nil {
		log.Fatal(err)
	}
	file = filepath.Join(folder, "mcp.lock.json")
	before := pin.OfTool(&mcp.Tool{Name: "read", Description: "Reads a note."})
	lock := &pin.Lock{Servers: map[string]*pin.Server{"notes": {Tools: map[string]pin.Definition{"read": before}}}}
	if err := lock.Write(file); err != nil {
		log.Fatal(err)
	}
	return file, func() { os.RemoveAll(folder) }
}
