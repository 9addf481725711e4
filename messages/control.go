package messages

import (
	"fmt"
	"log/slog"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
)

// CloseSession closes the session of one key. Running calls may finish within the drain
// timeout; waiting calls fail with [CodeClosed]. Closing a key that has no session does
// nothing.
//
// Send to: the supervisor.
// Replies: [Closed] or [Failure].
type CloseSession struct {
	ID  string `json:"id,omitempty"`
	Key Key    `json:"key"`
	// Now closes without draining, see [CloseScope.Now].
	Now bool `json:"now,omitempty"`
}

// RequestID returns the id of the command.
func (m *CloseSession) RequestID() string { return m.ID }

func (*CloseSession) command() {}

// CloseMatching closes the sessions whose scope matches a pattern. See [CloseScope]. If no
// scope matches, it does nothing.
//
// Send to: the supervisor.
// Replies: [Closed] or [Failure].
type CloseMatching struct {
	ID string `json:"id,omitempty"`
	// Server selects the sessions of one server. Empty selects those of all servers.
	Server string `json:"server,omitempty"`
	// Scopes is the pattern that scopes must match, as that of [path.Match]: "acme/*"
	// matches "acme/7", and neither "acme" nor "acme/7/8". It must not be empty.
	Scopes string `json:"scopes"`
	// Now closes without draining, see [CloseScope.Now].
	Now bool `json:"now,omitempty"`
}

// RequestID returns the id of the command.
func (m *CloseMatching) RequestID() string { return m.ID }

// Validate returns an error if the pattern is empty, too long, malformed or not printable.
func (m *CloseMatching) Validate() error {
	switch {
	case m.Scopes == "":
		return fmt.Errorf("scopes: is empty: * matches every scope without a slash")
	case len(m.Scopes) > maxScope:
		return fmt.Errorf("scopes: has %d bytes, at most %d are allowed", len(m.Scopes), maxScope)
	case !utf8.ValidString(m.Scopes):
		return fmt.Errorf("scopes: is not valid UTF-8")
	case strings.ContainsFunc(m.Scopes, unicode.IsControl):
		return fmt.Errorf("scopes: has a control character")
	}
	if _, err := path.Match(m.Scopes, ""); err != nil {
		return fmt.Errorf("scopes: %q is not a pattern of path.Match: %w", m.Scopes, err)
	}
	return nil
}

// Matches reports whether the session of a key is selected.
func (m *CloseMatching) Matches(key Key) bool {
	if m.Server != "" && m.Server != key.Server {
		return false
	}
	matches, err := path.Match(m.Scopes, key.Normal().Scope)
	return matches && err == nil
}

func (*CloseMatching) command() {}

// CancelScope cancels all operations of a scope, on all servers: those that came before it
// are answered with [CodeCancelled], and those that run are cancelled on the server. The
// sessions stay open. [Done] may come before the replies of the operations.
//
// Send to: the supervisor.
// Replies: [Done] or [Failure].
type CancelScope struct {
	ID    string `json:"id,omitempty"`
	Scope string `json:"scope"`
}

// RequestID returns the id of the command.
func (m *CancelScope) RequestID() string { return m.ID }

func (*CancelScope) command() {}

// Restart replaces the session of a key by a new one. Running calls may finish within the
// drain timeout. Then the MCP session is closed and the next one opens, with the next
// generation, and with the subscriptions, the roots and the log level of the one before.
// Calls that wait, and those that come meanwhile, run on the next one. The backoff of the
// key starts anew.
//
// The reply comes when the next session is open. If it cannot be opened, the [Failure] says
// why; the session before is closed nevertheless. A key that has no session is not
// restarted, and gets [Done] at once.
//
// Send to: the supervisor.
// Replies: [Done] or [Failure].
type Restart struct {
	ID  string `json:"id,omitempty"`
	Key Key    `json:"key"`
}

// RequestID returns the id of the command.
func (m *Restart) RequestID() string { return m.ID }

func (*Restart) command() {}

// Forget resets what is known of a server, as if it had never been dialed: whether it is
// down and when it is probed next, the backoff and the failures of its sessions, credentials
// that it has refused, which versions of the protocol it speaks, and which transport. Open
// sessions are not touched. The next call dials at once, and so do the calls that wait.
// What servers with the same URL or command share is forgotten for all of them.
//
// Send to: the supervisor.
// Replies: [Done] or [Failure].
type Forget struct {
	ID     string `json:"id,omitempty"`
	Server string `json:"server"`
}

// RequestID returns the id of the command.
func (m *Forget) RequestID() string { return m.ID }

func (*Forget) command() {}

// Tail has the lines that the server of a key writes to stderr sent to a subscriber, as
// [StderrLine], from now on. A key has one such subscriber; a further Tail replaces it, and
// one with a nil Subscriber ends the tail. It also ends when the session is closed or
// evicted, and when the subscriber stops. It outlives a restart of the session. The session
// need not be open: Tail does not open it.
//
// The server must have a command.
//
// Send to: the supervisor.
// Replies: [Done] or [Failure].
type Tail struct {
	ID  string `json:"id,omitempty"`
	Key Key    `json:"key"`
	// Subscriber gets the lines. It must be an actor: while it has 64 lines that it has not
	// handled yet, it gets no further ones.
	Subscriber *actor.PID `json:"subscriber,omitempty"`
}

// RequestID returns the id of the command.
func (m *Tail) RequestID() string { return m.ID }

func (*Tail) command() {}

// StderrLine is a line that a server has written to stderr, for the subscriber of a [Tail].
// The secrets of the configuration are blacked out, and invisible characters are removed.
// But a server may write anything: the line may quote the arguments of calls, and must not
// be trusted. It prints as its key.
type StderrLine struct {
	Key Key `json:"key"`
	// Line is the line without its end. A line of more than 4 KiB is cut.
	Line string `json:"line"`
	// Dropped is the number of lines before this one that were dropped, because the
	// subscriber was too slow.
	Dropped uint64 `json:"dropped,omitempty"`
}

// String returns the key, and nothing of the line.
func (m *StderrLine) String() string { return m.Key.String() + " stderr" }

// LogValue returns the key, and nothing of the line.
func (m *StderrLine) LogValue() slog.Value { return slog.StringValue(m.String()) }

// IgnoreDeadLetterLogging keeps lines for an actor that has stopped out of Proto.Actor's
// dead letter log.
func (*StderrLine) IgnoreDeadLetterLogging() {}

// GetAutoResponse returns what Proto.Actor answers when the subscriber has handled the line:
// it makes room for the next one.
func (*StderrLine) GetAutoResponse(c actor.Context) any { return &lineTaken{c.Self()} }

// lineTaken says that a subscriber has handled a line.
type lineTaken struct{ by *actor.PID }

// TakenBy returns the subscriber.
func (m *lineTaken) TakenBy() *actor.PID { return m.by }

// IgnoreDeadLetterLogging: it may come when the session has stopped.
func (*lineTaken) IgnoreDeadLetterLogging() {}

// Done is the reply to a command that has succeeded and has no result.
type Done struct {
	ID string `json:"id,omitempty"`
}

// RequestID returns the id of the command.
func (m *Done) RequestID() string { return m.ID }

// IgnoreDeadLetterLogging keeps replies to an actor that has stopped out of
// Proto.Actor's dead letter log.
func (*Done) IgnoreDeadLetterLogging() {}

func (*Done) reply() {}
