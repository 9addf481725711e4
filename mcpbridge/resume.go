package mcpbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// Resume is what is needed to resume a session that the server still knows. The id and the
// cookies are secrets.
type Resume struct {
	SessionID string                `json:"sessionId"`
	Server    *mcp.InitializeResult `json:"server"`
	// Endpoint identifies the server's URL, and for a server with PerKey also the set-up calls of
	// the key. The session id is sent to no other URL.
	Endpoint string `json:"endpoint"`
	// Identity identifies the owner of the session: the values of [Server.Headers], and the
	// identity of the [Credentials], see [Identified]. Another owner does not resume the
	// session, but gets a new one. Credentials without an identity belong to the key,
	// whatever tokens they have.
	Identity string `json:"identity,omitempty"`
	// Cookies are those that the server has set, in the form of a Cookie header.
	Cookies string `json:"cookies,omitempty"`
	// Declared identifies the capabilities that were declared when the session was opened, and the
	// [messages.Introduction] of the scope at that time. It is empty for none.
	Declared string `json:"declared,omitempty"`
}

// String says whether there is a session, without its id.
func (r Resume) String() string {
	if r.SessionID == "" {
		return "no session"
	}
	return "session with a hidden id"
}

// Format writes String for every verb: "%#v" would show the id.
func (r Resume) Format(s fmt.State, _ rune) { io.WriteString(s, r.String()) } //nolint:errcheck // fmt has nowhere to report it

// LogValue returns String.
func (r Resume) LogValue() slog.Value { return slog.StringValue(r.String()) }

// Record is what a [Store] keeps of one key. It has no credentials, but for those in Login.
type Record struct {
	Resume
	// Generation is the generation of the session.
	Generation uint64 `json:"generation"`
	// Version counts the changes of a record that is changed by [Swapper.Swap]. It is 0 for other records.
	Version uint64 `json:"version,omitempty"`
	// List is what a server has listed, or what is known of the protocols it speaks, in a record without a session.
	List json.RawMessage `json:"list,omitempty"`
	// Call is what is known of a call that runs once, in a record without a session.
	Call json.RawMessage `json:"call,omitempty"`
	// Handle is what is known of a handle, see [Handle], in a record without a session. It may be a secret.
	Handle json.RawMessage `json:"handle,omitempty"`
	// Login is what is kept of a login to a server, encrypted, in a record without a session. See package login.
	Login []byte `json:"login,omitempty"`
}

// String returns the generation and the endpoint, without the id.
func (r Record) String() string {
	return fmt.Sprintf("%v, generation %d, endpoint %q", r.Resume, r.Generation, r.Endpoint)
}

// Format writes String for every verb: "%#v" would show the id.
func (r Record) Format(s fmt.State, _ rune) { io.WriteString(s, r.String()) } //nolint:errcheck // fmt has nowhere to report it

// LogValue returns the generation and the endpoint, without the id.
func (r Record) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("session", r.Resume), slog.Uint64("generation", r.Generation), slog.String("endpoint", r.Endpoint))
}

// Valid reports whether the value is complete and well-formed, so that a dial can use it.
func (r Resume) Valid() bool {
	for _, c := range []byte(r.SessionID) { // the specification allows only visible ASCII characters
		if c < '!' || c > '~' {
			return false
		}
	}
	return r.SessionID != "" && r.Server != nil && slices.Contains(mcp.SupportedProtocolVersions(), r.Server.ProtocolVersion)
}

// Store remembers sessions across restarts of the process. Its methods may be called from
// any goroutine, but only one at a time for each key: another request about the key waits. They
// may block until ctx ends. A supervisor cancels ctx after 2 seconds: it then opens sessions
// without the store, and asks it again some seconds later. A method owns its arguments, and the
// caller owns what a method returns.
type Store interface {
	// Load returns the record of a key, or nil when there is none.
	Load(ctx context.Context, key messages.Key) (*Record, error)
	// Save replaces the record of a key.
	Save(ctx context.Context, key messages.Key, record *Record) error
	// Delete deletes the record of a key, and with it the generation. It succeeds if there
	// is no record. A supervisor does not call Delete: when a session has ended, the
	// supervisor keeps the generation in a record without a session id. Delete is for
	// programs that clear their store.
	Delete(ctx context.Context, key messages.Key) error
	// Keys returns the keys that have records, in any order.
	Keys(ctx context.Context) ([]messages.Key, error)
}

// Swapper is implemented by a [Store] in which several processes may change one record. The stores
// of package resume and of the modules resume/redis and cluster implement it.
type Swapper interface {
	Store
	// Swap saves a record if the one that the key has is of the version from, and reports whether
	// it did. Version 0 stands for no record, and for one that Save has written without a version.
	// The caller sets the Version of record to from + 1. A nil record deletes the one that there
	// is. An error leaves open whether the record was saved, as with Save. If the record in place
	// cannot be read, Swap returns an error and saves nothing.
	Swap(ctx context.Context, key messages.Key, from uint64, record *Record) (swapped bool, err error)
}
