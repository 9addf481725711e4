package messages

import (
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Listing says where a list comes from that was asked for with Shared. Such a list comes from the catalogue of the
// supervisor: it is fetched once for all scopes that see the same, and no session is opened for it while one of them is
// known. A scope with an open session gets what this session lists. A scope without one gets a list that nobody has
// fetched yet by an idle session of another scope that sees the same, or else by a session of its own, which is opened as
// for a call. Members of a cluster first ask one of them, which is the same for all, whether it has the list.
//
// With Fresh, a list that is Stale is fetched again first, on a session that is opened for it: one for all who wait. While
// the server is down, it is probed until the deadline. So an operation with Fresh and a late deadline is a watch, whose
// reply comes when the server is back. Others are told by [CatalogueChanged].
//
// Scopes see the same if their sessions are opened in the same way: with the same result of PerKey and the same
// capabilities, without Auth, an HTTPClient, roots, a handler or a subscriber of the scope; or if ListClass of the
// server says so, and they declare the same capabilities and have the same [Introduction].
type Listing struct {
	// Server is what the server said about itself on the session that was listed, with its instructions, or nil if
	// that is not known. Read-only.
	Server *mcp.InitializeResult `json:"server,omitempty"`
	AsSent
	// At is when the list was fetched.
	At time.Time `json:"at"`
	// Until is when to ask again, because the list may be Stale then, or zero: an event will say, such as [ToolsChanged]
	// or [CatalogueChanged].
	Until time.Time `json:"until,omitzero"`
	// Shared is true if the list was not fetched on the open session of the scope itself. Then the
	// generation of the reply is 0.
	Shared bool `json:"shared,omitempty"`
	// Stale is true if the server may list something else by now: it is down, for 5 minutes no session of this member has
	// been open that listed the same, the time that the server has given is over, or a change cannot be fetched.
	Stale bool `json:"stale,omitempty"`
	// Down is true if the server is known to be down. It is probed only while operations wait for it.
	Down bool `json:"down,omitempty"`
}

// ListsSnapshot is what the catalogue knows of a server's lists of one method, in a [ServerSnapshot].
type ListsSnapshot struct {
	// Lists is how many classes of scopes have a list, see [Listing]. The members of a cluster have a catalogue each.
	Lists int `json:"lists"`
	// Scopes is how many scopes have asked for them, up to 65,536 over all lists of the catalogue.
	Scopes int `json:"scopes"`
	// Items is the number of tools, or of what else is listed, in the longest list.
	Items int `json:"items"`
	// Bytes is the size of the tools in the largest list: of their names, descriptions and input schemas as JSON, which is what a
	// model gets of them. It is 0 for other lists.
	Bytes int `json:"bytes,omitempty"`
	// Oldest is when the oldest of them was fetched.
	Oldest time.Time `json:"oldest"`
	// Stale is how many are served although the server may list something else by now.
	Stale int `json:"stale,omitempty"`
}
