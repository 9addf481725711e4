package mcpbridge

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// Resume is what it takes to attach to a session that the server still knows.
// The id is a secret.
type Resume struct {
	SessionID string                `json:"sessionId"`
	Server    *mcp.InitializeResult `json:"server"`
}

// Record is what a [Store] keeps of one key. It has no credentials.
type Record struct {
	Resume
	// Endpoint is a fingerprint of the server's URL: an id is shown to no other.
	Endpoint string `json:"endpoint"`
	// Generation is that of the session.
	Generation uint64 `json:"generation"`
}

// Store remembers sessions across restarts of our own process. Its methods may be
// called from any goroutine, for one key by one at a time; they may block, until ctx
// ends. What they are given is theirs; what they return is the caller's.
type Store interface {
	// Load returns the record of a key, or nil when there is none.
	Load(ctx context.Context, key messages.Key) (*Record, error)
	// Save replaces the record of a key.
	Save(ctx context.Context, key messages.Key, record *Record) error
	// Delete forgets a key. One that is not there is fine.
	Delete(ctx context.Context, key messages.Key) error
}
