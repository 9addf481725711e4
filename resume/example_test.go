package resume_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

// A record survives the end of the process.
func Example() {
	dir, err := os.MkdirTemp("", "resume") // a real program uses a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "sessions.db")
	ctx := context.Background()
	key := messages.Key{Server: "browser", Scope: "conversation-1"}

	store, err := resume.Open(path, resume.Config{})
	if err != nil {
		log.Fatal(err)
	}
	err = store.Save(ctx, key, &mcpbridge.Record{
		Resume:     mcpbridge.Resume{SessionID: "a secret", Endpoint: "a fingerprint"},
		Generation: 3,
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}

	store, err = resume.Open(path, resume.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	record, err := store.Load(ctx, key)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(record) // never the id
	// Output: session with a hidden id, generation 3, endpoint "a fingerprint"
}
