package messages

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
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
// that it has refused, a pause that it has asked for with 429, which versions of the protocol it
// speaks, and which transport. Open sessions are not touched. The next call dials at once, and so do the calls that wait.
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
