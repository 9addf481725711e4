package gateway

import (
	"encoding/json"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
)

// initialize opens the session of a client. It waits for servers whose lists are not known, because clients give initialize more
// time than a list, and most of them ask for each list once.
func (c *client) initialize(r *mcpserver.Request) (any, error) {
	r.Pass()
	if err := c.enter(r.Params); err != nil {
		return nil, err
	}
	c.note(func(k *record) bool {
		k.Scope, k.Said = c.scope, r.Params
		return true
	})
	c.keep()
	c.meet(r.Context)
	return c.introduction(), nil
}

// enter opens the scope of a client that says what it is.
func (c *client) enter(said json.RawMessage) error {
	c.opening.Lock()
	defer c.opening.Unlock()
	switch {
	case c.ready.Load():
		return refused("initialize was sent before")
	case c.ctx.Err() != nil:
		return errGone
	}
	capabilities, err := c.introduce(said)
	if err != nil {
		return err
	}
	return c.open(capabilities)
}

// introduce reads what a client says of itself in the parameters of initialize, and returns its capabilities.
func (c *client) introduce(said json.RawMessage) (*mcp.ClientCapabilities, error) {
	var params struct {
		ProtocolVersion string              `json:"protocolVersion"`
		Capabilities    json.RawMessage     `json:"capabilities"`
		ClientInfo      *mcp.Implementation `json:"clientInfo"`
	}
	if said == nil {
		return nil, mcpserver.Invalid("initialize: params are missing")
	}
	if err := json.Unmarshal(said, &params); err != nil {
		return nil, mcpserver.Invalid("initialize: " + err.Error())
	}
	capabilities, err := capabilitiesOf(params.Capabilities)
	if err != nil {
		return nil, mcpserver.Invalid("capabilities: " + err.Error())
	}
	if c.info = params.ClientInfo; c.info == nil {
		c.info = &mcp.Implementation{Name: "client"}
	}
	c.told = mcpserver.ObjectOf(said).Without("protocolVersion", "_meta")
	if c.version = params.ProtocolVersion; !slices.Contains(mcpserver.Revisions, c.version) {
		c.version = mcpserver.Revisions[0]
	}
	return capabilities, nil
}

// capabilitiesOf returns the capabilities of a client, as servers are told.
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

// everything has the capabilities of a server that has not answered. Of several servers, no others are passed on: nobody
// knows for which of them a request would be.
var everything = json.RawMessage(`{"tools": {}, "prompts": {}, "resources": {"subscribe": true}, "logging": {}, "completions": {}}`)

// introduction returns the result of initialize: what the server says about itself, or several of them together.
func (c *client) introduction() mcpserver.Object {
	result, can, instructions := mcpserver.Object{}, mcpserver.Object{}, []string{}
	if c.offer.prefixed { // a server that is added later may have tools
		can.With("tools", mcpserver.Object{})
	}
	var all []mcpserver.Object
	for _, s := range c.servers() {
		said := s.introduced()
		its := capabilitiesIn(said)
		all = append(all, s.introducedTasks())
		if !c.offer.prefixed {
			result, can = asInitialize(said), its
			break
		}
		for name := range mcpserver.ObjectOf(everything) {
			if subscribes := mcpserver.ObjectOf(can[name])["subscribe"]; its[name] != nil && string(subscribes) != "true" {
				can[name] = its[name]
			}
		}
		if text := said.Text("instructions"); text != "" {
			instructions = append(instructions, "# "+s.name+"\n\n"+text)
		}
	}
	if !c.offer.isHere() {
		offerTasks(can, all, c.isStateless)
	}
	// Clients are told of changes in any case: a server may come back with other lists.
	for _, name := range []string{"tools", "prompts", "resources"} {
		if can[name] != nil {
			can.With(name, mcpserver.ObjectOf(can[name]).With("listChanged", true))
		}
	}
	if len(instructions) > 0 {
		result.With("instructions", strings.Join(instructions, "\n\n"))
	}
	if result["serverInfo"] == nil {
		result.With("serverInfo", &mcp.Implementation{Name: "mcpactor", Version: version()})
	}
	return result.With("protocolVersion", c.version).With("capabilities", can)
}

// version returns the version of this program.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version
	}
	return "devel"
}
