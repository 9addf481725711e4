// Package pin knows which definitions of tools, prompts and instructions somebody has accepted, so that a server cannot change them
// unseen. They are in a lock file, which the command "mcpactor pin" writes beside the configuration, and a [Lock] says of a definition
// whether it may be offered.
//
// A lock holds what a server says about what it has, and how the server is started. What the server does is not in it.
package pin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/definition"
)

// Lock is the definitions that somebody has accepted. A nil Lock accepts everything. It can be asked by several goroutines, and must not
// be changed after it was asked for the first time.
type Lock struct {
	// RefuseNew refuses the tools and prompts that the lock does not have. By default they are accepted, except a name that only looks like
	// one of the lock.
	RefuseNew bool `json:"refuseNew,omitempty"`
	// Servers are the servers, by their names in the configuration.
	Servers map[string]*Server `json:"servers"`

	once  sync.Once
	alike map[string][]named // the tools and prompts, by how they look
}

// Server is what was accepted of a server.
type Server struct {
	Identity
	// Name and Version are what the server says about itself. They are for people: a server may have another version.
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	// Instructions are those of the server, or nil if it had none.
	Instructions *Definition `json:"instructions,omitempty"`
	// Tools and Prompts are those of the server, by the names that the server gives them.
	Tools   map[string]Definition `json:"tools,omitempty"`
	Prompts map[string]Definition `json:"prompts,omitempty"`
}

// Identity says how a server is reached, as the configuration says it: with the names of variables and not with their values, which may
// be secret.
type Identity struct {
	// Command is the program and its arguments.
	Command []string `json:"command,omitempty"`
	// Dir is the working directory of the program.
	Dir string `json:"dir,omitempty"`
	// Env has the names of the environment variables that the program gets from the configuration, in any order.
	Env []string `json:"env,omitempty"`
	// URL is the endpoint of a server over HTTP.
	URL string `json:"url,omitempty"`
	// Cleanup is the program that ends what a session leaves, and its arguments.
	Cleanup []string `json:"cleanup,omitempty"`
	// Setup has the calls that run first in each session, each as JSON.
	Setup []string `json:"setup,omitempty"`
	// Handles has the declarations of handles, which say what tools are called without being asked for, each as JSON.
	Handles []string `json:"handles,omitempty"`
}

// Definition is a definition that was accepted.
type Definition struct {
	// Digest identifies it. For a tool, it is the Digest of package toolset.
	Digest string `json:"digest"`
	// Text is what the digest covers, as JSON: an object, or the text of instructions.
	Text json.RawMessage `json:"text"`
}

// OfTool returns the definition of a tool. It covers the name, title, description, schemas and annotations.
func OfTool(tool *mcp.Tool) Definition {
	text, _ := definition.OfTool(tool)
	return Definition{text.Digest(), json.RawMessage(text)}
}

// OfPrompt returns the definition of a prompt. It covers the name, title, description and arguments.
func OfPrompt(prompt *mcp.Prompt) Definition {
	text := definition.OfPrompt(prompt)
	return Definition{text.Digest(), json.RawMessage(text)}
}

// OfInstructions returns the definition of the instructions of a server, or nil if it has none.
func OfInstructions(instructions string) *Definition {
	text := definition.Of(instructions)
	if text == "" {
		return nil
	}
	return &Definition{text.Digest(), json.RawMessage(text)}
}

// remedy ends the errors of a lock. Models read it as well: it has no command that accepts anything.
const remedy = `"mcpactor pin" shows a person what differs, and how to accept it`

// Tool returns nil if a tool of a server may be offered and called: it has the definition that was accepted, or it is new. Otherwise the error
// says why not, and how to accept it. name is the one that the server gives the tool.
func (l *Lock) Tool(server, name, digest string) error { return l.check(tool, server, name, digest) }

// Prompt is like [Lock.Tool] for a prompt.
func (l *Lock) Prompt(server, name, digest string) error {
	return l.check(prompt, server, name, digest)
}

// Instructions is like [Lock.Tool] for the instructions of a server. Those of a server that had none when it was accepted are not new: they
// differ. An empty digest is that of a server without instructions.
func (l *Lock) Instructions(server, digest string) error {
	its := l.server(server)
	switch {
	case l == nil, digest == "", its != nil && its.Instructions != nil && its.Instructions.Digest == digest:
		return nil
	case its != nil:
		return fmt.Errorf("the instructions of the server %q are not those that were accepted: %s", server, remedy)
	case l.RefuseNew:
		return fmt.Errorf("the server %q has instructions that nobody has accepted: %s", server, remedy)
	}
	return nil
}

// Identity returns nil if a server may be started or asked at all: it is the one that was accepted. An entry that was changed and renamed
// is a new server.
func (l *Lock) Identity(server string, is Identity) error {
	accepted := l.server(server)
	switch {
	case l == nil:
		return nil
	case accepted == nil:
		return fmt.Errorf("the server %q is new, and nobody has accepted it: %s", server, remedy)
	}
	var differ []string
	for _, part := range []struct {
		name string
		same bool
	}{
		{"command", slices.Equal(accepted.Command, is.Command)},
		{"working directory", accepted.Dir == is.Dir},
		{"names of environment variables", slices.Equal(sorted(accepted.Env), sorted(is.Env))},
		{"URL", accepted.URL == is.URL},
		{"cleanup", slices.Equal(accepted.Cleanup, is.Cleanup)},
		{"setup", slices.Equal(accepted.Setup, is.Setup)},
		{"handles", slices.Equal(accepted.Handles, is.Handles)},
	} {
		if !part.same {
			differ = append(differ, part.name)
		}
	}
	if differ == nil {
		return nil
	}
	return fmt.Errorf("the configuration of the server %q is not the one that was accepted (%s): %s", server, strings.Join(differ, ", "), remedy)
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// server returns what was accepted of a server, or nil.
func (l *Lock) server(name string) *Server {
	if l == nil {
		return nil
	}
	return l.Servers[name]
}

// kind is a kind of things that have names.
type kind string

const (
	tool   kind = "tool"
	prompt kind = "prompt"
)

// of returns the things of this kind of a server.
func (k kind) of(s *Server) map[string]Definition {
	switch {
	case s == nil:
		return nil
	case k == tool:
		return s.Tools
	}
	return s.Prompts
}

func (l *Lock) check(k kind, server, name, digest string) error {
	if l == nil {
		return nil
	}
	accepted, known := k.of(l.server(server))[name]
	switch {
	case known && accepted.Digest == digest:
		return nil
	case known:
		return fmt.Errorf("the definition of the %s %.100q of the server %q is not the one that was accepted: %s", k, name, server, remedy)
	}
	if like := l.like(k, name); like != nil {
		return fmt.Errorf("the %s %+.100q of the server %q is new, and looks like the %s %+.100q of the server %q: %s", k, name, server, k, like.name, like.server, remedy)
	}
	if l.RefuseNew {
		return fmt.Errorf("the %s %.100q of the server %q is new, and nobody has accepted it: %s", k, name, server, remedy)
	}
	return nil
}
