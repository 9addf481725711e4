package handles

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Kind is a declared kind of handles of a server. It is immutable.
type Kind struct {
	mcpbridge.Handle
	Server string
	// PerScope says that each scope has a process of its own, which counts for itself.
	PerScope bool

	pattern, listed, gone, full *regexp.Regexp // nil if there is none
}

// Kinds are those of one server.
type Kinds []*Kind

// KindsOf returns the kinds that a server declares. They are valid.
func KindsOf(srv *mcpbridge.Server) (kinds Kinds) {
	compile := func(text string) *regexp.Regexp {
		if text == "" {
			return nil
		}
		return regexp.MustCompile(text)
	}
	for _, h := range srv.Handles {
		h.Argument = h.ArgumentName()
		kinds = append(kinds, &Kind{
			Handle: h, Server: srv.Name, PerScope: srv.Command != "",
			pattern: compile(h.Pattern), listed: compile(h.Listed), gone: compile(h.Gone), full: compile(h.Full),
		})
	}
	return kinds
}

// Shared returns the kinds for a server on which others mint as well: its lists are not only of what is ours.
func (k Kinds) Shared() (kinds Kinds) {
	for _, kind := range k {
		shared := *kind
		shared.Own = false
		kinds = append(kinds, &shared)
	}
	return kinds
}

// Minting returns the kind whose handles a tool mints, or nil.
func (k Kinds) Minting(tool string) *Kind {
	for _, kind := range k {
		if kind.Mint == tool {
			return kind
		}
	}
	return nil
}

// Given returns the names of the handles that the arguments of a call may have, of each kind.
func (k Kinds) Given(params *mcp.CallToolParams) (names []Name) {
	var args map[string]json.RawMessage
	raw, is := params.Arguments.(json.RawMessage)
	if !is {
		raw, _ = json.Marshal(params.Arguments) // what cannot be encoded is not sent
	}
	if json.Unmarshal(raw, &args) != nil {
		return nil
	}
	for _, kind := range k {
		if id := scalar(args[kind.Argument]); id != "" {
			names = append(names, Name{kind.Server, kind.Mint, id})
		}
	}
	return names
}

// scalar returns a string or a number of JSON as text, or "".
func scalar(raw json.RawMessage) string {
	var text string
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return ""
	case raw[0] == '"':
		_ = json.Unmarshal(raw, &text)
		return text
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return string(raw)
	}
	return ""
}

// idIn returns the handle in the result of a mint, or "".
func (k *Kind) idIn(r *mcp.CallToolResult) string {
	if r.IsError {
		return ""
	}
	if k.pattern != nil {
		return first(k.pattern, textOf(r))
	}
	if r.StructuredContent != nil {
		raw, _ := json.Marshal(r.StructuredContent)
		if id := at(raw, k.Path); id != "" {
			return id
		}
	}
	for _, c := range r.Content {
		if text, is := c.(*mcp.TextContent); is {
			if id := at(json.RawMessage(text.Text), k.Path); id != "" {
				return id
			}
		}
	}
	return ""
}

// first returns the first group of the first match, or "".
func first(pattern *regexp.Regexp, text string) string {
	if found := pattern.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// at returns the string or number at a path of JSON, or "".
func at(raw json.RawMessage, path string) string {
	for part := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) == nil {
			raw = object[part]
			continue
		}
		var list []json.RawMessage
		i, err := strconv.Atoi(part)
		if err != nil || json.Unmarshal(raw, &list) != nil || i < 0 || i >= len(list) {
			return ""
		}
		raw = list[i]
	}
	return scalar(raw)
}

// Minted returns what the result of a mint says.
func (k *Kind) Minted(r *mcp.CallToolResult) Answer {
	full := r.IsError && matches(k.full, r)
	return Answer{ID: k.idIn(r), Full: full, None: r.IsError && !full}
}

// Used returns what the result of a call says that has a handle as an argument. A result that is no error may quote what it has found: only that of
// Release says then that there is no such handle.
func (k *Kind) Used(r *mcp.CallToolResult, releases bool) Answer {
	return Answer{Gone: (r.IsError || releases) && matches(k.gone, r), IsErr: r.IsError}
}

func matches(pattern *regexp.Regexp, r *mcp.CallToolResult) bool {
	return pattern != nil && pattern.MatchString(textOf(r))
}

// ListedIn returns the handles in the result of a list.
func (k *Kind) ListedIn(r *mcp.CallToolResult) (ids []string) {
	for _, found := range k.listed.FindAllStringSubmatch(textOf(r), -1) {
		ids = append(ids, found[1])
	}
	return ids
}

// textOf returns the texts of a result, with a newline between two, or what is structured if it has none.
func textOf(r *mcp.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		if text, is := c.(*mcp.TextContent); is {
			all = append(all, text.Text)
		}
	}
	if all == nil && r.StructuredContent != nil {
		raw, _ := json.Marshal(r.StructuredContent)
		return string(raw)
	}
	return strings.Join(all, "\n")
}

// uniqueLength is how long a handle is at least that is taken for one that never comes again.
const uniqueLength = 16

// IsUnique reports whether a handle is never minted again.
func (k *Kind) IsUnique(id string) bool { return k.Unique || len(id) >= uniqueLength }

// fullID returns the ID of a handle with its scope, if another scope may have a handle with the same ID.
func (k *Kind) fullID(id, scope string) string {
	if k.PerScope && !k.IsUnique(id) {
		return strconv.Quote(scope) + id
	}
	return id
}

// NumberIn reports whether the schema of a tool, as it was decoded, wants a number for the handle.
func (k *Kind) NumberIn(schema any) bool {
	raw, _ := json.Marshal(schema)
	var s struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return false
	}
	kind, _ := s.Properties[k.Argument].Type.(string)
	return kind == "number" || kind == "integer"
}
