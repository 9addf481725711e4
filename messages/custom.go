package messages

import (
	"encoding/json"
	"errors"
)

// Custom calls a method that is not part of MCP, which an extension of the server has. The
// method must be one of the CustomMethods of the server's configuration. A call that was lost
// is not replayed, because nothing is known of the method, unless Replay is [ReplayAlways].
//
// Send to: the supervisor.
// Replies: [CustomResult] or [Failure].
type Custom struct {
	Header
	// Name is the method, such as "acme/search".
	Name string `json:"name"`
	// Params are the parameters: a value that is a JSON object when it is encoded, such as a
	// struct, a map or a [json.RawMessage]. Nil is an empty object. Read-only once sent.
	Params any `json:"params,omitempty"`
}

// Method returns Name.
func (m *Custom) Method() string { return m.Name }

// Validate returns an error if the method is missing.
func (m *Custom) Validate() error {
	if m.Name == "" {
		return errors.New("name: the method is empty")
	}
	return nil
}

// CustomResult is the reply to [Custom].
type CustomResult struct {
	Receipt
	// Result is the result as the server has sent it: JSON, usually an object, which must not
	// be trusted. Read-only.
	Result json.RawMessage `json:"result"`
}

// CustomNotification is a notification that is not part of MCP. Only those are reported that
// are in the CustomNotifications of the server's configuration.
type CustomNotification struct {
	named[CustomNotification]
	Stamp
	notified
	// Method is the name of the notification, such as "acme/changed".
	Method string `json:"method"`
	// Params are the parameters as the server has sent them: JSON, which must not be trusted,
	// or nil. Read-only.
	Params json.RawMessage `json:"params,omitempty" log:"-"`
}
