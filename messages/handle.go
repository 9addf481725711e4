package messages

import (
	"log/slog"
	"time"
)

// HolderAttribute is the key of the attribute that says who holds the handles that an operation mints or uses, see
// [github.com/mcpactor/mcpactor/mcpbridge.Handle]: set it if several share a scope. Without it, the scope itself holds them.
const HolderAttribute = "mcpactor.holder"

// ReleaseHandles releases the handles that a scope holds, or one holder within it, and that nobody else holds. Calls that use them
// may finish within the drain timeout. The sessions stay open.
//
// Send to: the supervisor.
// Replies: [HandlesReleased] or [Failure].
type ReleaseHandles struct {
	ID    string `json:"id,omitempty"`
	Scope string `json:"scope"`
	// Holder is whom [HolderAttribute] names. Empty are all of the scope.
	Holder string `json:"holder,omitempty"`
}

// RequestID returns the id of the command.
func (m *ReleaseHandles) RequestID() string { return m.ID }

func (*ReleaseHandles) command() {}

// HandlesReleased is the reply to [ReleaseHandles].
type HandlesReleased struct {
	ID string `json:"id,omitempty"`
	// Released is how many handles were released, or were gone.
	Released int `json:"released"`
	// Left are those that could not be released, with the reason.
	Left []Left `json:"left,omitempty"`
	// Unanswered are the names of the members of a cluster that have not answered in time. Only a cluster sets it.
	Unanswered []string `json:"unanswered,omitempty"`
}

// RequestID returns the id of the command.
func (m *HandlesReleased) RequestID() string { return m.ID }

// IgnoreDeadLetterLogging keeps replies to an actor that has stopped out of
// Proto.Actor's dead letter log.
func (*HandlesReleased) IgnoreDeadLetterLogging() {}

func (*HandlesReleased) reply() {}

// ListHandles asks which handles a scope holds, or one holder within it.
//
// Send to: the supervisor.
// Replies: [HandleList] or [Failure].
type ListHandles struct {
	ID    string `json:"id,omitempty"`
	Scope string `json:"scope"`
	// Holder is whom [HolderAttribute] names. Empty are all of the scope.
	Holder string `json:"holder,omitempty"`
}

// RequestID returns the id of the command.
func (m *ListHandles) RequestID() string { return m.ID }

func (*ListHandles) command() {}

// HandleList is the reply to [ListHandles]. It prints as its id, because handles may be secrets.
type HandleList struct {
	ID string `json:"id,omitempty"`
	// Handles are sorted by the time of their mints. Read-only.
	Handles []HeldHandle `json:"handles"`
	// Unanswered are the names of the members of a cluster that have not answered in time. Only a cluster sets it.
	Unanswered []string `json:"unanswered,omitempty"`
}

// HeldHandle is a handle that somebody holds.
type HeldHandle struct {
	// Key is that of the call that has minted it.
	Key Key `json:"key"`
	// Mint and Release are the tools that have minted it and release it, and Argument has it.
	Mint     string `json:"mint"`
	Release  string `json:"release"`
	Argument string `json:"argument"`
	// Handle may be a secret: whoever knows it may be able to use it.
	Handle string `json:"handle"`
	// Shared is true if others hold it as well.
	Shared bool      `json:"shared,omitempty"`
	Minted time.Time `json:"minted"`
	Used   time.Time `json:"used"`
}

// RequestID returns the id of the command.
func (m *HandleList) RequestID() string { return m.ID }

// String returns the id, and no handle.
func (m *HandleList) String() string { return "#" + m.ID }

// LogValue returns the id, and no handle.
func (m *HandleList) LogValue() slog.Value { return slog.GroupValue(slog.String("id", m.ID)) }

// IgnoreDeadLetterLogging keeps replies to an actor that has stopped out of
// Proto.Actor's dead letter log.
func (*HandleList) IgnoreDeadLetterLogging() {}

func (*HandleList) reply() {}

// HandleSnapshot is what is known of the handles of one kind in a [Snapshot]. That of a cluster has the sums over its members: each has a line
// and a bound of its own.
type HandleSnapshot struct {
	// Mint is the tool that mints them.
	Mint string `json:"mint"`
	// Held is how many somebody holds, and Releasing how many are being released.
	Held      int `json:"held"`
	Releasing int `json:"releasing,omitempty"`
	// Minting is how many mints are under way, and Unanswered how many have lost their answers.
	Minting    int `json:"minting,omitempty"`
	Unanswered int `json:"unanswered,omitempty"`
	// Left are those that nobody holds, and that could not be released, with the reason, sorted by key. At most 100 are listed.
	Left      []Left `json:"left,omitempty"`
	LeftCount int    `json:"leftCount,omitempty"`
	// Waiting is how many calls wait for their turn.
	Waiting int `json:"waiting,omitempty"`
	// Max is how many there may be, as it is declared or as the server has taught, or 0.
	Max int `json:"max,omitempty"`
}
