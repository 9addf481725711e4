package gateway

import (
	"encoding/json"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/mcpserver"
)

// initialize opens the session of a client. It does not wait for a server that was seen before.
func (c *client) initialize(r *mcpserver.Request) (any, error) {
	var params struct {
		ProtocolVersion string              `json:"protocolVersion"`
		Capabilities    json.RawMessage     `json:"capabilities"`
		ClientInfo      *mcp.Implementation `json:"clientInfo"`
	}
	if err := json.Unmarshal(r.Params, &params); err != nil {
		return nil, mcpserver.Invalid("initialize: " + err.Error())
	}
	c.opening.Lock()
	defer c.opening.Unlock()
	switch {
	case c.ready.Load():
		return nil, mcpserver.Invalid("initialize was sent before")
	case c.ctx.Err() != nil:
		return nil, errGone
	}
	capabilities, err := capabilitiesOf(params.Capabilities)
	if err != nil {
		return nil, mcpserver.Invalid("capabilities: " + err.Error())
	}
	if c.info = params.ClientInfo; c.info == nil {
		c.info = &mcp.Implementation{Name: "client"}
	}
	if c.version = params.ProtocolVersion; !slices.Contains(mcpserver.Revisions, c.version) {
		c.version = mcpserver.Revisions[0]
	}
	if err := c.g.open(c, capabilities); err != nil {
		return nil, err
	}
	var known sync.WaitGroup
	for _, s := range c.servers {
		known.Go(func() { s.introduce(r.Context) })
	}
	known.Wait()
	return c.introduction(), nil
}

// capabilitiesOf returns the capabilities that servers are told.
func capabilitiesOf(data json.RawMessage) (*mcp.ClientCapabilities, error) {
	can := &mcp.ClientCapabilities{}
	if len(data) == 0 {
		return can, nil
	}
	if err := json.Unmarshal(data, can); err != nil {
		return nil, err
	}
	var roots struct{ Roots *mcp.RootCapabilities }
	err := json.Unmarshal(data, &roots)
	can.RootsV2 = roots.Roots
	return can, err
}

// introduction is the result of initialize: what the servers say about themselves, and all capabilities as long as one
// of them has not said anything.
func (c *client) introduction() any {
	result := struct {
		ProtocolVersion string                  `json:"protocolVersion"`
		Capabilities    *mcp.ServerCapabilities `json:"capabilities"`
		ServerInfo      *mcp.Implementation     `json:"serverInfo"`
		Instructions    string                  `json:"instructions,omitempty"`
	}{c.version, &mcp.ServerCapabilities{}, &mcp.Implementation{Name: "mcpactor", Version: version()}, ""}
	can := result.Capabilities
	var instructions []string
	for _, s := range c.servers {
		said := s.introduced()
		if said == nil || said.Capabilities == nil {
			can.Tools, can.Prompts, can.Resources = &mcp.ToolCapabilities{}, &mcp.PromptCapabilities{}, &mcp.ResourceCapabilities{Subscribe: true}
			can.Logging, can.Completions = &mcp.LoggingCapabilities{}, &mcp.CompletionCapabilities{}
			continue
		}
		its := said.Capabilities
		if its.Tools != nil && can.Tools == nil {
			can.Tools = &mcp.ToolCapabilities{}
		}
		if its.Prompts != nil && can.Prompts == nil {
			can.Prompts = &mcp.PromptCapabilities{}
		}
		if its.Resources != nil {
			if can.Resources == nil {
				can.Resources = &mcp.ResourceCapabilities{}
			}
			can.Resources.Subscribe = can.Resources.Subscribe || its.Resources.Subscribe
		}
		if its.Logging != nil {
			can.Logging = its.Logging
		}
		if its.Completions != nil {
			can.Completions = its.Completions
		}
		if !c.g.cfg.Prefixed {
			can.Experimental, can.Extensions = its.Experimental, its.Extensions
			if said.ServerInfo != nil {
				result.ServerInfo = said.ServerInfo
			}
			instructions = append(instructions, said.Instructions)
		} else if said.Instructions != "" {
			instructions = append(instructions, "# "+s.name+"\n\n"+said.Instructions)
		}
	}
	// We tell of changes in any case: a server may come back with other lists.
	if can.Tools != nil {
		can.Tools.ListChanged = true
	}
	if can.Prompts != nil {
		can.Prompts.ListChanged = true
	}
	if can.Resources != nil {
		can.Resources.ListChanged = true
	}
	result.Instructions = strings.Join(instructions, "\n\n")
	return result
}

// version returns the version of this program.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version
	}
	return "devel"
}

// errGone is the error for a request whose client has left.
var errGone = errors.New("the client has left")
