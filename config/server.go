package config

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/nearest"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// entry has the fields of one server.
type entry struct {
	server mcpbridge.Server
	tools  toolset.Filter

	command, setup, metadata       *node
	cleanup                        *node
	oauth, auth                    *node // auth is Cursor's
	limits                         *node
	args                           arguments
	kind, transport, transportType string // three names for the transport
	url, serverURL, httpURL        string
	env, environment               variables
	envFile, source                string
	disabled, enabled              bool
	share                          bool
	allow, deny                    *node
	include, exclude               *node // of Gemini CLI
	enabledTools, disabledTools    *node
	listed                         *node // the field tools
}

// fields returns the fields of a server by their names in a file: those of this package, and
// the supported ones of other clients. It has each field of [mcpbridge.Server] and
// [toolset.Filter] that a file can express, which a test checks.
func (e *entry) fields() map[string]any {
	return map[string]any{
		"command": &e.command, "args": &e.args, "env": &e.env, "environment": &e.environment, "envFile": &e.envFile, "inheritEnv": &e.server.InheritEnv, "cwd": &e.server.Dir,
		"type": &e.kind, "transport": &e.transport, "transportType": &e.transportType, "source": &e.source,
		"url": &e.url, "serverUrl": &e.serverURL, "httpUrl": &e.httpURL, "headers": &e.server.Headers,
		"protocolVersion": &e.server.ProtocolVersion,
		"keepAlive":       &e.server.KeepAlive, "maxResult": &e.server.MaxResult, "noStream": &e.server.NoStream, "setup": &e.setup,
		"customMethods": &e.server.CustomMethods, "customNotifications": &e.server.CustomNotifications,
		"limits": &e.limits, "handles": &e.server.Handles, "cleanup": &e.cleanup, "oauth": &e.oauth, "auth": &e.auth,
		"noCookies": &e.server.NoCookies, "insecureCredentials": &e.server.InsecureCredentials,
		"disabled": &e.disabled, "enabled": &e.enabled,
		"allow": &e.allow, "includeTools": &e.include, "enabledTools": &e.enabledTools, "tools": &e.listed,
		"deny": &e.deny, "excludeTools": &e.exclude, "disabledTools": &e.disabledTools, "readOnly": &e.tools.ReadOnly,
		"scope": &e.tools.Scope, "share": &e.share, "displayName": &e.tools.DisplayName, "slug": &e.tools.Slug, "metadata": &e.metadata,
	}
}

// server reads one server, and leaves it out if it has to. It ignores the other fields of a disabled server.
func (r *reader) server(n *node) {
	has := func(field, value string) bool {
		f := n.field(field)
		return f != nil && f.kind == isBoolean && f.text == value
	}
	if has("disabled", "true") || has("enabled", "false") || r.isExcluded(n) {
		return
	}
	name := r.nameOf(n)
	before := len(r.errs)
	r.current, r.lacks = n, nil
	e, login := r.entry(n, name)
	r.current = nil
	if accept := r.loader.Accept; accept != nil && len(r.errs) == before && len(r.lacks) == 0 {
		if err := accept(name, identityIn(n, e)); err != nil {
			r.fail(n, "%w", err)
		}
	}
	wrong := r.errs[before:]
	switch {
	case len(r.lacks) > 0: // nothing can be said of the values that are missing
		wrong = r.lacks
	case len(wrong) == 0:
		r.file.Supervisor.Servers = append(r.file.Supervisor.Servers, e.server)
		r.file.Tools = append(r.file.Tools, e.tools)
		if e.share {
			r.file.Shared = append(r.file.Shared, name)
		}
		if !reflect.DeepEqual(login, OAuth{}) {
			r.file.OAuth[name] = login
		}
		r.entries = append(r.entries, n)
		return
	case !r.loader.LeaveOut:
		return
	}
	for _, err := range wrong {
		r.left = append(r.left, leftOut{name, err})
	}
	r.errs = r.errs[:before]
}

// entry reads the fields of a server.
func (r *reader) entry(n *node, name string) (e *entry, login OAuth) {
	e = &entry{}
	before := len(r.errs)
	if r.failMalformed(n); len(r.errs) > before {
		return e, login
	}
	r.fields(n, e.fields(), r.unknownInServer)
	r.start(n, e)
	r.remote(n, e)
	if e.setup != nil && r.is(e.setup, isList) {
		for _, item := range e.setup.items {
			e.server.Setup = append(e.server.Setup, r.call(item))
		}
	}
	if e.limits != nil {
		r.limits(e.limits, &e.server.Limits)
	}
	if e.cleanup != nil {
		c := &e.server.Cleanup
		r.strict(e.cleanup, map[string]any{"command": &c.Command, "args": &c.Args, "timeout": &c.Timeout, "records": &c.Records})
	}
	for _, given := range []*node{e.oauth, e.auth} {
		switch {
		case given == nil:
		case given == e.auth && e.oauth != nil:
			r.fail(given, "conflicts with oauth: give one of them")
		case given.field("grant") != nil:
			if kind, credentials := r.grant(given, &e.server); credentials != nil { // a nil pointer is no nil interface
				login.Grant, e.server.Auth = kind, credentials
			}
		default:
			login = r.oauth(given)
		}
	}
	if e.metadata != nil && r.is(e.metadata, isObject) && len(e.metadata.items) > 0 {
		e.tools.Metadata, _ = r.value(e.metadata, keepDollars).(map[string]any)
	}
	if e.share && e.tools.Scope != "" {
		r.fail(n.field("share"), "conflicts with scope: give one of them")
	} else if e.share {
		e.tools.Scope = SharedScope
	}
	r.filters(e)
	r.perKey(n, e)
	e.server.Name, e.tools.Name = name, name
	err := (messages.Key{Scope: e.tools.Scope}).Validate()
	if err == nil {
		err = e.server.Validate()
	}
	hasCommand, hasURL := e.server.Command != "", e.server.URL != ""
	switch {
	case err == nil || len(r.errs) > before: // it may be a consequence of another error
	case !hasCommand && !hasURL:
		r.failField(n, "command", "is empty, and so is url: set one")
	case hasCommand && hasURL:
		r.failField(n, "command", "conflicts with url: give one of them")
	default:
		r.fail(n, "%w", err)
	}
	return e, login
}

// start reads the command, the arguments and the environment of a stdio server.
func (r *reader) start(n *node, e *entry) {
	switch {
	case e.command == nil:
	case e.command.kind == isList: // opencode
		var words arguments
		r.into(e.command, &words)
		if len(words) > 0 {
			e.server.Command, e.args = words[0], append(words[1:], e.args...)
		}
	case e.command.kind == isObject: // Zed before version 0.200
		for _, field := range []string{"args", "env"} {
			if inner := e.command.field(field); inner != nil && n.field(field) != nil {
				r.fail(inner, "conflicts with %s of the server: give one of them", field)
			}
		}
		r.fields(e.command, map[string]any{"path": &e.server.Command, "args": &e.args, "env": &e.env}, r.unknownInServer)
	default:
		r.into(e.command, &e.server.Command)
	}
	e.server.Command, e.server.Dir = inHome(e.server.Command), inHome(e.server.Dir)
	for i, arg := range e.args {
		switch path := inHome(arg); {
		case path == arg || e.command == nil:
		case r.vscode:
			e.args[i] = path
		default: // it may be for a shell elsewhere, such as that of ssh
			r.warn(argumentOf(n, i), "begins with ~, which is not replaced here: write ${userHome} if it is the home directory of this machine")
		}
	}
	e.server.Args = e.args
	if e.env != nil && e.environment != nil {
		r.fail(n.field("environment"), "conflicts with env: give one of them")
	}
	if e.envFile != "" {
		e.server.Env = r.envFile(n.field("envFile"), e.envFile)
	}
	for _, env := range []variables{e.environment, e.env} {
		if e.server.Env == nil {
			e.server.Env = env
			continue
		}
		maps.Copy(e.server.Env, env)
	}
}

// kinds are the transports by their names in lower case, without punctuation.
var kinds = map[string]string{
	"stdio": "stdio", "local": "stdio",
	"http": mcpbridge.TransportHTTP, "streamablehttp": mcpbridge.TransportHTTP, "sse": mcpbridge.TransportSSE,
	"remote": "remote", // opencode does not say which of the HTTP transports
}

// remote reads the URL and the transport of a server.
func (r *reader) remote(n *node, e *entry) {
	kind, source := "", ""
	for _, given := range []struct{ field, kind string }{{"type", e.kind}, {"transport", e.transport}, {"transportType", e.transportType}} {
		known := kinds[nearest.Plain(given.kind)]
		switch {
		case given.kind == "":
		case known == "":
			r.fail(n.field(given.field), "%q is not supported: use stdio, http or sse", n.field(given.field).text)
		case kind == "":
			kind, source = known, fmt.Sprintf("%s is %q", given.field, n.field(given.field).text)
		case kind != known:
			r.fail(n.field(given.field), "is %q, but %s", n.field(given.field).text, source)
		}
	}
	for _, given := range []struct{ field, url string }{{"url", e.url}, {"httpUrl", e.httpURL}, {"serverUrl", e.serverURL}} {
		switch {
		case given.url == "":
		case e.server.URL == "":
			e.server.URL = given.url
		case e.server.URL != given.url:
			r.fail(n.field(given.field), "is a different URL for the same server: give one of them")
		}
	}
	switch {
	case e.source == "extension":
		r.fail(n.field("source"), "is \"extension\", which only Zed can start: give the command or the URL of the server")
	case kind == "stdio" && n.field("command") == nil:
		r.failField(n, "command", "is empty, but %s", source)
	case kind != "" && kind != "stdio" && e.server.URL == "":
		r.failField(n, "url", "is empty, but %s", source)
	}
	switch {
	case kind == mcpbridge.TransportHTTP || kind == mcpbridge.TransportSSE:
		e.server.Transport = kind
	case e.httpURL != "":
		e.server.Transport = mcpbridge.TransportHTTP
	}
}

// call reads one call of the field setup.
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

// filters reads the filters of tools.
func (r *reader) filters(e *entry) {
	if e.listed != nil && e.listed.kind != isList {
		if !neutral(e.listed) {
			r.fail(e.listed, "is %s, which may restrict tools: use allow and deny", e.listed.kind)
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
			r.fail(list, "conflicts with %s: give one of them", first.name)
		case list.kind == isList && len(list.items) == 0:
			r.fail(list, "is empty: remove it to allow all tools, or disable the server to allow none")
		}
		first = list
		if list != e.allow && !slices.Equal(patterns, []string{"*"}) { // the fields of other clients have names, not patterns
			for i := range patterns {
				patterns[i] = special.ReplaceAllString(patterns[i], `\$0`)
			}
		}
		e.tools.Allow = patterns
	}
	for _, list := range []*node{e.deny, e.exclude, e.disabledTools} {
		if list == nil {
			continue
		}
		patterns := r.patterns(list)
		e.tools.Deny = append(e.tools.Deny, patterns...)
		for _, pattern := range patterns { // other clients deny the tool of just this name
			if name := special.ReplaceAllString(pattern, `\$0`); list != e.deny && name != pattern {
				e.tools.Deny = append(e.tools.Deny, name)
			}
		}
	}
}

// special matches the characters that have a meaning in a pattern.
var special = regexp.MustCompile(`[*?\[\\]`)

// patterns reads a list of names and patterns of tools.
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
			r.fail(n.items[i], "%q is not a valid pattern: %w", n.items[i].text, err)
		}
	}
	return patterns
}

// forbidden matches the characters that the name of a server cannot have.
var forbidden = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// nameOf returns the name of a server, also of one that is left out. It replaces a name that is not valid, such as
// "My Server", and adds a warning. Two servers with the same name are an error of the file.
func (r *reader) nameOf(n *node) string {
	name := n.name
	if (&mcpbridge.Server{Name: name, Command: "any"}).Validate() != nil {
		name = strings.Trim(forbidden.ReplaceAllString(name, "-"), "._-")
	}
	if n.name != "" && name == "" || strings.ContainsFunc(n.name, isForeign) { // too little of it is left to tell it from others
		sum := sha256.Sum256([]byte(n.name))
		name = fmt.Sprintf("%s-%x", cmp.Or(name, "server"), sum[:4])
	}
	if other := r.names[name]; other != nil {
		r.fail(n, "would get the name %q, which is the name of %s: rename one of them", name, other.path())
	}
	r.names[name] = n
	if name != n.name && name != "" {
		if r.file.Renamed == nil {
			r.file.Renamed = map[string]string{}
		}
		r.file.Renamed[n.name] = name
		r.warn(n, "gets the name %q: a name has only the letters A to Z, digits, dots, dashes and underscores", name)
	}
	return name
}

// isForeign reports whether a character is a letter of another script than the Latin one.
func isForeign(r rune) bool { return unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) }
