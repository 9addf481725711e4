package config

import (
	"maps"
	"slices"
	"strings"
)

// root reads the root object of the file. wrong are the malformed values in it.
func (r *reader) root(n *node, wrong []*node) {
	var projects, mcpServers, servers, contextServers, mcp, settings, clients *node
	targets := map[string]any{
		"mcpServers": &mcpServers, "servers": &servers, "context_servers": &contextServers, "mcp": &mcp, "inputs": &r.inputs, "supervisor": &settings, "clients": &clients,
	}
	known := slices.Sorted(maps.Keys(targets))
	var others []*node
	r.fields(n, targets, func(field *node) {
		if field.name == "projects" && field.kind == isObject {
			projects = field
			return
		}
		others = append(others, field)
	})
	if n.kind != isObject {
		return
	}
	if settings != nil {
		r.supervisor(settings)
	}
	var all *node
	for _, given := range []*node{mcpServers, servers, contextServers} {
		switch {
		case given == nil:
		case all == nil:
			all = given
		default:
			r.fail(given, "conflicts with %s: give one of them", all.name)
		}
	}
	switch {
	case mcp == nil:
	case all != nil: // the object mcp of Gemini CLI, which has no servers
		r.dollars = expandDollars
		names := []string{"allowed", "excluded"}
		r.fields(mcp, map[string]any{names[0]: &r.allowed, names[1]: &r.excluded}, func(field *node) { r.unknownInFile(field, names) })
	default:
		all = r.nested(mcp)
	}
	r.vscode = all != nil && (all == servers || all.parent == mcp && !r.opencode)
	var local *node // of Claude Code
	if projects != nil && all == mcpServers {
		local = r.project(projects)
	} else if projects != nil {
		others = append(others, projects)
	}
	objects := slices.DeleteFunc([]*node{local, all}, func(object *node) bool { return object == nil })
	for _, value := range wrong {
		entry := value.entryIn(objects)
		r.wrong[entry] = append(r.wrong[entry], value)
	}
	r.failMalformed(nil)
	if len(objects) == 0 {
		if len(r.errs) == 0 {
			r.noServer(&node{parent: n, name: "mcpServers", line: n.line}, projects, "is missing")
		}
		for _, field := range others {
			r.unknownInFile(field, known)
		}
		return
	}
	r.readInputs()
	r.servers(objects)
	if clients != nil {
		r.clients(clients)
	}
	for _, field := range others {
		if name := field.name; r.opencode && (name == "tools" || name == "permission") && field.kind == isObject {
			r.permissions(field)
			continue
		}
		r.unknownInFile(field, known)
	}
	if len(r.errs)+len(r.left)+len(r.file.Supervisor.Servers) > 0 {
		return
	}
	r.noServer(objects[0], projects, "has no enabled server")
}

// noServer adds the error of a file without a server.
func (r *reader) noServer(at, projects *node, text string) {
	if other := otherProject(projects); other != "" {
		at, text = projects, "has servers for other folders only: start this program in one of them, such as "+printable(other)
	}
	r.fail(at, "%s", text)
}

// nested returns the servers in an object mcp, of opencode or of the settings of VS Code.
func (r *reader) nested(mcp *node) *node {
	servers := mcp.field("servers")
	if servers == nil || servers.field("type") != nil && servers.field("type").kind == isText || servers.field("enabled") != nil {
		r.opencode = true
		return mcp
	}
	r.opencode = mcp.field("inputs") == nil
	var found *node
	names := []string{"servers", "inputs"}
	r.fields(mcp, map[string]any{names[0]: &found, names[1]: &r.inputs}, func(field *node) { r.unknownInFile(field, names) })
	return found
}

// geminiFields are fields that only Gemini CLI has. It replaces $VAR.
var geminiFields = []string{"httpUrl", "includeTools", "excludeTools", "trust"}

// servers reads all servers, in the order of their names. A server in an earlier object takes precedence over one of the same
// name in a later one.
func (r *reader) servers(objects []*node) {
	var sorted []*node
	seen := map[string]*node{}
	for _, n := range objects {
		if !r.is(n, isObject) {
			continue
		}
		for _, server := range n.items {
			switch other := seen[server.name]; {
			case other != nil && other.parent == n:
				r.fail(server, "is a duplicate")
				continue
			case other != nil:
				r.warn(server, "is replaced by %s", other.path())
				continue
			}
			seen[server.name] = server
			sorted = append(sorted, server)
			for _, field := range geminiFields {
				if server.field(field) != nil {
					r.dollars = expandDollars
				}
			}
		}
	}
	for _, list := range []*node{r.allowed, r.excluded} {
		if list == nil {
			continue
		}
		var names []string
		r.into(list, &names)
		for i, name := range names {
			item := list.items[i]
			item.text = name // with its variables replaced
			if !slices.ContainsFunc(sorted, func(server *node) bool { return sameName(item, server) }) {
				r.warn(item, "is not a server of this file")
			}
		}
	}
	if r.allowed != nil && len(r.allowed.items) == 0 {
		r.fail(r.allowed, "is empty: remove it to allow all servers")
	}
	slices.SortFunc(sorted, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	for _, server := range sorted {
		r.server(server)
	}
}

// isExcluded reports whether the settings of Gemini CLI exclude a server.
func (r *reader) isExcluded(n *node) bool {
	lists := func(list *node) bool {
		return list != nil && slices.ContainsFunc(list.items, func(item *node) bool { return sameName(item, n) })
	}
	return lists(r.excluded) || r.allowed != nil && !lists(r.allowed)
}

// sameName reports whether an item of a list is the name of a server. Gemini CLI ignores case
// and the white space around it.
func sameName(item, server *node) bool {
	return strings.EqualFold(strings.TrimSpace(item.text), strings.TrimSpace(server.name))
}
