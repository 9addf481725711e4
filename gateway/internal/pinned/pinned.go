// Package pinned decides which definitions of a server's lists a client gets, if somebody has to accept them.
package pinned

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/definition"
	"github.com/mcpactor/mcpactor/internal/exact"
	"github.com/mcpactor/mcpactor/internal/results"
)

// Pins says which definitions are accepted.
type Pins interface {
	Tool(server, name, digest string) error
	Prompt(server, name, digest string) error
	Instructions(server, digest string) error
}

// List is what is known of the definitions in a list of tools or prompts. A nil List accepts everything.
type List struct {
	pins    Pins
	server  string
	method  string
	digests map[string][]string // by name, also of what is refused: a server may list a name twice
	refused bool
}

// NewList returns a list of a server without definitions, or nil if nothing in it has to be accepted.
func NewList(pins Pins, server, method string) *List {
	if pins == nil || method != "tools/list" && method != "prompts/list" {
		return nil
	}
	return &List{pins: pins, server: server, method: method, digests: map[string][]string{}}
}

// Add adds a definition, as its server has sent it. The error says why the client does not get it.
func (l *List) Add(name string, raw json.RawMessage) error {
	if l == nil {
		return nil
	}
	digest := l.digestOf(raw)
	l.digests[name] = append(l.digests[name], digest)
	err := l.accepts(name, digest)
	l.refused = l.refused || err != nil
	return err
}

// HasRefused reports whether the client does not get something that was added.
func (l *List) HasRefused() bool { return l != nil && l.refused }

// Find returns a name that is the wanted one, also of what is refused, or "".
func (l *List) Find(wanted func(name string) bool) string {
	if l != nil {
		for name := range l.digests {
			if wanted(name) {
				return name
			}
		}
	}
	return ""
}

// Accepts returns why a name may not be used now, or nil: it has a definition that the client gets.
func (l *List) Accepts(name string) error {
	if l == nil {
		return nil
	}
	err := fmt.Errorf("the server does not list %.100q, so that nobody can have accepted it", name)
	for _, digest := range l.digests[name] {
		if err = l.accepts(name, digest); err == nil {
			break
		}
	}
	return err
}

func (l *List) accepts(name, digest string) error {
	switch {
	case digest == "":
		return fmt.Errorf("the definition of %.100q cannot be read, or not by all clients in the same way", name)
	case l.method == "tools/list":
		return l.pins.Tool(l.server, name, digest)
	}
	return l.pins.Prompt(l.server, name, digest)
}

// digestOf returns the digest of a definition, which is that of what this library decodes. It returns "" if there is none, or if a client would
// read another one: clients get the JSON as it came, and may ignore the case of names, as package json does, or take the first of two members
// with one name.
func (l *List) digestOf(raw json.RawMessage) string {
	var text, loose definition.Text
	var err error
	list := func(items string) mcp.Result {
		result, _, _ := results.Decode(l.method, slices.Concat([]byte(`{"`+items+`":[`), raw, []byte("]}")))
		return result
	}
	if l.method == "tools/list" {
		var tool mcp.Tool
		err = json.Unmarshal(raw, &tool)
		loose, _ = definition.OfTool(&tool)
		if list, is := list("tools").(*mcp.ListToolsResult); is && len(list.Tools) == 1 {
			text, _ = definition.OfTool(list.Tools[0])
		}
	} else {
		var prompt mcp.Prompt
		err = json.Unmarshal(raw, &prompt)
		loose = definition.OfPrompt(&prompt)
		if list, is := list("prompts").(*mcp.ListPromptsResult); is && len(list.Prompts) == 1 {
			text = definition.OfPrompt(list.Prompts[0])
		}
	}
	if err != nil || loose != text || hasTwice(raw) {
		return ""
	}
	return text.Digest()
}

// hasTwice reports whether an object in JSON has two members with one name.
func hasTwice(raw json.RawMessage) bool {
	value, err := exact.Value(raw)
	return err != nil || tokens(raw) != tokens(definition.Encode(value))
}

func tokens(raw json.RawMessage) (n int) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	for _, err := decoder.Token(); err == nil; _, err = decoder.Token() {
		n++
	}
	return n
}

// Instructions returns what a server says of itself, without instructions that are not accepted, and without those that only clients read that
// ignore the case of names. The error says why they are not accepted.
func Instructions(pins Pins, server string, said json.RawMessage) (json.RawMessage, error) {
	if pins == nil || said == nil {
		return said, nil
	}
	its := mcpserver.ObjectOf(said)
	why := pins.Instructions(server, definition.Of(its["instructions"]).Digest())
	before := len(its)
	maps.DeleteFunc(its, func(name string, _ json.RawMessage) bool {
		return strings.EqualFold(name, "instructions") && (name != "instructions" || why != nil)
	})
	if len(its) == before {
		return said, why
	}
	said, _ = mcpserver.Encode(its) // it was JSON
	return said, why
}
