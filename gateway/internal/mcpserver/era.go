package mcpserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/paramheader"
)

// Revisions are the revisions of the protocol that begin with initialize, the newest first.
var Revisions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// Stateless is the revision without initialize and without sessions: each request stands by itself, and says in its _meta which
// revision and which capabilities the client has.
const Stateless = "2026-07-28"

// statusOf returns the HTTP status of a response.
func statusOf(m *Message) int {
	if m.Error == nil {
		return http.StatusOK
	}
	switch m.Error.Code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case mcp.CodeHeaderMismatch, mcp.CodeMissingRequiredClientCapabilities, mcp.CodeUnsupportedProtocolVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// IsStateless reports whether a request, or a notification, is of the stateless revision, or of one that is not known.
func (m *Message) IsStateless() bool {
	claimed := m.Meta()[mcp.MetaKeyProtocolVersion]
	return claimed != nil && !slices.Contains(Revisions, m.Meta().Text(mcp.MetaKeyProtocolVersion)) || m.Method == "server/discover"
}

// checkEnvelope returns an error for a stateless request that does not say what each of them says.
func checkEnvelope(m *Message) error {
	meta := m.Meta()
	if meta[mcp.MetaKeyProtocolVersion] == nil {
		return Invalid("_meta: " + mcp.MetaKeyProtocolVersion + " is missing")
	}
	if asked := meta.Text(mcp.MetaKeyProtocolVersion); asked != Stateless {
		return unsupported(asked)
	}
	if can := meta[mcp.MetaKeyClientCapabilities]; len(can) == 0 || can[0] != '{' {
		return Invalid("_meta: " + mcp.MetaKeyClientCapabilities + " is missing, or no object")
	}
	if info := meta[mcp.MetaKeyClientInfo]; info != nil && info[0] != '{' {
		return Invalid("_meta: " + mcp.MetaKeyClientInfo + " is no object")
	}
	return nil
}

// unsupported returns the error for a revision that is not spoken.
func unsupported(asked string) error {
	data, err := json.Marshal(&mcp.UnsupportedProtocolVersionData{Supported: []string{Stateless}, Requested: asked})
	if err != nil {
		return err
	}
	return &jsonrpc.Error{Code: mcp.CodeUnsupportedProtocolVersion, Message: "Unsupported protocol version: use " + Stateless + ", or initialize", Data: data}
}

// refuseStateless returns the error for a request that is stateless, from a client that begins with initialize. That to
// server/discover is the one of servers that do not know it: then a client sends initialize.
func refuseStateless(m *Message) error {
	switch {
	case m.Method == "server/discover":
		return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "server/discover is not known: use initialize"}
	case m.IsStateless():
		return unsupported(m.Meta().Text(mcp.MetaKeyProtocolVersion))
	}
	return nil
}

// named has the member of the parameters that the header Mcp-Name repeats.
var named = map[string]string{
	"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId",
}

// checkHeaders returns an error for a stateless request whose headers do not say the same as its body (SEP-2243).
func checkHeaders(m *Message, headers http.Header) error {
	expected := []struct{ header, value string }{{headerRevision, m.Meta().Text(mcp.MetaKeyProtocolVersion)}, {headerMethod, m.Method}}
	if member := named[m.Method]; member != "" && m.Members()[member] != nil {
		expected = append(expected, struct{ header, value string }{headerName, m.Members().Text(member)})
	}
	for _, one := range expected {
		if len(headers.Values(one.header)) == 0 {
			return mismatch(fmt.Sprintf("%s is missing: send %q", one.header, one.value))
		}
		if said, ok := paramheader.Decode(strings.Trim(headers.Get(one.header), " \t")); !ok || said != one.value {
			return mismatch(fmt.Sprintf("%s is %q, but the body says %q", one.header, said, one.value))
		}
	}
	return nil
}

func mismatch(text string) error { return &jsonrpc.Error{Code: mcp.CodeHeaderMismatch, Message: text} }
