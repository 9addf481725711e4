package config

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/toolset"
)

// entry is what a file says of one server.
type entry struct {
	server mcpbridge.Server
	tools  toolset.Server

	command, setup, metadata     *node
	args                         arguments
	kind, transport, kindOfCline string // all of them are the type
	url, serverURL, httpURL      string
	env, environment             map[string]string
	envFile, source              string
	disabled, enabled            bool
	allow, deny                  *node
	include, exclude             *node // of Gemini CLI
	enabledTools, disabledTools  *node
	listed                       *node
}

// fields are the fields of a server by their names in a file: ours, and those of other
// clients that mean the same. A field of [mcpbridge.Server] or [toolset.Server] that a
// file can express belongs here; a test says which are missing.
func (e *entry) fields() map[string]any {
	return map[string]any{
		"command": &e.command, "args": &e.args, "env": &e.env, "environment": &e.environment, "envFile": &e.envFile, "inheritEnv": &e.server.InheritEnv, "cwd": &e.server.Dir,
		"type": &e.kind, "transport": &e.transport, "transportType": &e.kindOfCline, "source": &e.source,
		"url": &e.url, "serverUrl": &e.serverURL, "httpUrl": &e.httpURL, "headers": &e.server.Headers,
		"protocolVersion": &e.server.ProtocolVersion,
		"keepAlive":       &e.server.KeepAlive, "maxResult": &e.server.MaxResult, "noStream": &e.server.NoStream, "setup": &e.setup,
		"noCookies": &e.server.NoCookies, "insecureCredentials": &e.server.InsecureCredentials,
		"disabled": &e.disabled, "enabled": &e.enabled,
		"allow": &e.allow, "includeTools": &e.include, "enabledTools": &e.enabledTools, "tools": &e.listed,
		"deny": &e.deny, "excludeTools": &e.exclude, "disabledTools": &e.disabledTools,
		"displayName": &e.tools.DisplayName, "slug": &e.tools.Slug, "metadata": &e.metadata,
	}
}

// server reads one server. Of one that is disabled it reads no more than that.
func (r *reader) server(n *node) {
	says := func(field, value string) bool {
		f := n.field(field)
		return f != nil && f.kind == isBoolean && f.text == value
	}
	if says("disabled", "true") || says("enabled", "false") || r.excluded(n) {
		return
	}
	e := &entry{}
	before := len(r.errs)
	r.fields(n, e.fields(), r.otherOfServer)
	r.start(n, e)
	r.remote(n, e)
	if e.setup != nil && r.is(e.setup, isList) {
		for _, item := range e.setup.items {
			e.server.Setup = append(e.server.Setup, r.call(item))
		}
	}
	if e.metadata != nil && r.is(e.metadata, isObject) && len(e.metadata.items) > 0 {
		e.tools.Metadata, _ = r.value(e.metadata, keepDollars).(map[string]any)
	}
	r.filters(e)
	if len(r.errs) > before {
		return
	}
	e.server.Name = r.nameOf(n)
	e.tools.Name = e.server.Name
	if err := e.server.Validate(); err != nil {
		r.fail(n, "%w", err)
		return
	}
	r.file.Supervisor.Servers = append(r.file.Supervisor.Servers, e.server)
	r.file.Tools = append(r.file.Tools, e.tools)
	r.entries = append(r.entries, n)
}

// start reads what a stdio server is started with.
func (r *reader) start(n *node, e *entry) {
	switch {
	case e.command == nil:
	case e.command.kind == isList: // opencode
		var words arguments
		r.into(e.command, &words)
		if len(words) > 0 {
			e.server.Command, e.args = words[0], append(words[1:], e.args...)
		}
	case e.command.kind == isObject: // Zed, formerly
		r.fields(e.command, map[string]any{"path": &e.server.Command, "args": &e.args, "env": &e.env}, r.otherOfServer)
	default:
		r.into(e.command, &e.server.Command)
	}
	e.server.Args = e.args
	if e.env != nil && e.environment != nil {
		r.fail(n.field("environment"), "is given, and so is env: give one of them")
	}
	if e.envFile != "" {
		e.server.Env = r.envFile(n.field("envFile"), e.envFile)
	}
	for _, env := range []map[string]string{e.environment, e.env} {
		if e.server.Env == nil {
			e.server.Env = env
			continue
		}
		maps.Copy(e.server.Env, env)
	}
}

// kinds are the types of servers, without case and punctuation.
var kinds = map[string]string{
	"stdio": "stdio", "local": "stdio",
	"http": mcpbridge.TransportHTTP, "streamablehttp": mcpbridge.TransportHTTP, "sse": mcpbridge.TransportSSE,
	"remote": "remote", // over HTTP, as far as opencode knows
}

// remote reads where a server is, and how it is spoken to.
func (r *reader) remote(n *node, e *entry) {
	kind, says := "", ""
	for _, given := range []struct{ field, kind string }{{"type", e.kind}, {"transport", e.transport}, {"transportType", e.kindOfCline}} {
		known := kinds[plain(given.kind)]
		switch {
		case given.kind == "":
		case known == "":
			r.fail(n.field(given.field), "%q is none of stdio, http and sse", n.field(given.field).text)
		case kind == "":
			kind, says = known, fmt.Sprintf("%s is %q", given.field, n.field(given.field).text)
		case kind != known:
			r.fail(n.field(given.field), "is %q, but %s", n.field(given.field).text, says)
		}
	}
	for _, given := range []struct{ field, url string }{{"url", e.url}, {"httpUrl", e.httpURL}, {"serverUrl", e.serverURL}} {
		switch {
		case given.url == "":
		case e.server.URL == "":
			e.server.URL = given.url
		case e.server.URL != given.url:
			r.fail(n.field(given.field), "is another URL of the same server: give one")
		}
	}
	switch {
	case e.source == "extension":
		r.fail(n.field("source"), "is an extension, which only Zed starts: give its command or its url")
	case kind == "stdio" && n.field("command") == nil:
		r.failField(n, "command", "is empty, but %s", says)
	case kind != "" && kind != "stdio" && e.server.URL == "":
		r.failField(n, "url", "is empty, but %s", says)
	}
	switch {
	case kind == mcpbridge.TransportHTTP || kind == mcpbridge.TransportSSE:
		e.server.Transport = kind
	case e.httpURL != "":
		e.server.Transport = mcpbridge.TransportHTTP
	}
}

// call reads one call of setup.
func (r *reader) call(n *node) *mcp.CallToolParams {
	call := &mcp.CallToolParams{Arguments: map[string]any{}}
	var arguments *node
	r.strict(n, map[string]any{"tool": &call.Name, "arguments": &arguments})
	if arguments != nil && r.is(arguments, isObject) {
		call.Arguments = r.value(arguments, r.dollars)
	}
	if n.kind == isObject && call.Name == "" {
		r.failField(n, "tool", "is missing")
	}
	return call
}

// filters reads which tools are wanted.
func (r *reader) filters(e *entry) {
	if e.listed != nil && e.listed.kind != isList {
		if !neutral(e.listed) {
			r.fail(e.listed, "is %s, which may restrict the tools: name them in allow and deny", e.listed.kind)
		}
		e.listed = nil
	}
	var first *node
	for _, list := range []*node{e.allow, e.include, e.enabledTools, e.listed} {
		if list == nil {
			continue
		}
		patterns := r.patterns(list)
		switch {
		case first != nil:
			r.fail(list, "is given, and so is %s: give one of them", first.name)
		case list.kind == isList && len(list.items) == 0:
			r.fail(list, "is empty: leave it out if all tools are wanted, and disable the server if none is")
		}
		first = list
		if list != e.allow && !slices.Equal(patterns, []string{"*"}) { // names, of other clients
			for i := range patterns {
				patterns[i] = special.ReplaceAllString(patterns[i], `\$0`)
			}
		}
		e.tools.Allow = patterns
	}
	for _, list := range []*node{e.deny, e.exclude, e.disabledTools} {
		if list != nil {
			e.tools.Deny = append(e.tools.Deny, r.patterns(list)...)
		}
	}
}

// special are the characters of a name that a pattern does not match as they are.
var special = regexp.MustCompile(`[*?\[\\]`)

// patterns reads names and patterns of tools.
func (r *reader) patterns(n *node) (patterns []string) {
	before := len(r.errs)
	r.into(n, &patterns)
	if len(r.errs) > before {
		return nil
	}
	for i, pattern := range patterns {
		if pattern == "" {
			r.fail(n.items[i], "is empty")
		} else if _, err := path.Match(pattern, ""); err != nil {
			r.fail(n.items[i], "%q is no pattern: %w", n.items[i].text, err)
		}
	}
	return patterns
}

// forbidden is what the name of a server does not have.
var forbidden = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// nameOf returns the name of a server. One that we do not allow, such as "My Server", is
// changed, with a warning, unless two servers would have the same.
func (r *reader) nameOf(n *node) string {
	name := n.name
	if (&mcpbridge.Server{Name: name, Command: "any"}).Validate() != nil {
		name = strings.Trim(forbidden.ReplaceAllString(name, "-"), "._-")
	}
	if other := r.names[name]; other != nil {
		r.fail(n, "would have the name %q, as %s has: rename one of them", name, other.path())
	}
	r.names[name] = n
	if name != n.name && name != "" {
		r.warn(n, "has the name %q here: other characters than letters, digits, dots, dashes and underscores are replaced", name)
	}
	return name
}
