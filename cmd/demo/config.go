package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// config is what a configuration file says.
type config struct {
	supervisor.Config
	tools []toolset.Server // of the servers that are not disabled
	store string           // the path of the resume file, or empty
	roots bool             // whether servers are told of roots
}

// settings returns what the supervisor object says.
func (c config) settings() config {
	c.Servers, c.tools = nil, nil
	c.Logger = zerolog.Logger{}
	return c
}

// loadConfig reads a configuration file: the mcpServers object that MCP clients
// share, and an optional supervisor object. Fields of a server that other
// clients have and we do not are ignored. Errors name the field.
func loadConfig(path string) (config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return config{}, err
	}
	cfg, err := parseConfig(data, os.LookupEnv)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return cfg, err
}

// parseConfig parses a configuration; lookup finds environment variables.
func parseConfig(data []byte, lookup func(string) (string, bool)) (config, error) {
	var cfg config
	env := expander{lookup}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var servers, settings json.RawMessage
	if err := decode(data, false, map[string]any{"mcpServers": &servers, "supervisor": &settings}); err != nil {
		return cfg, err
	}
	if settings != nil {
		err := decode(settings, true, settingsOf(&cfg))
		if err == nil {
			err = env.expand("store", &cfg.store)
		}
		if err != nil {
			return cfg, named("supervisor", err)
		}
		if cfg.roots {
			cfg.Capabilities = &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{ListChanged: true}}
		}
	}
	if servers == nil {
		return cfg, errors.New("mcpServers: is missing")
	}
	entries := map[string]json.RawMessage{}
	if err := json.Unmarshal(servers, &entries); err != nil {
		return cfg, named("mcpServers", plainer(servers, err))
	}
	if name, twice := repeated(servers); twice {
		return cfg, fmt.Errorf("mcpServers.%s: is there twice", name)
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		srv, tools, err := parseServer(entries[name], env)
		if err != nil {
			return cfg, named("mcpServers", named(name, err))
		}
		if tools.Disabled {
			continue
		}
		srv.Name, tools.Name = name, name
		if err := srv.Validate(); err != nil {
			return cfg, named("mcpServers", named(name, err))
		}
		cfg.Servers = append(cfg.Servers, srv)
		cfg.tools = append(cfg.tools, tools)
	}
	if len(cfg.Servers) == 0 {
		return cfg, errors.New("mcpServers: has no server that is not disabled")
	}
	return cfg, nil
}

// settingsOf returns the fields of the supervisor object.
func settingsOf(cfg *config) map[string]any {
	return map[string]any{
		"maxSessions": &cfg.MaxSessions, "maxInFlight": &cfg.MaxInFlight,
		"maxWaiting": &cfg.MaxWaiting, "maxDials": &cfg.MaxDials,
		"idleTimeout": &cfg.IdleTimeout, "connectTimeout": &cfg.ConnectTimeout,
		"callTimeout": &cfg.CallTimeout, "drainTimeout": &cfg.DrainTimeout, "closeTimeout": &cfg.CloseTimeout,
		"backoffBase": &cfg.BackoffBase, "backoffMax": &cfg.BackoffMax,
		"budget": &cfg.Budget, "budgetHalfLife": &cfg.BudgetHalfLife, "coolDown": &cfg.CoolDown,
		"handlerTimeout": &cfg.HandlerTimeout, "roots": &cfg.roots, "store": &cfg.store, "leaveOpen": &cfg.LeaveOpen,
	}
}

// transports are the types of servers, with the names that other clients use.
var transports = map[string]string{
	"": "", "stdio": "",
	"http": mcpbridge.TransportHTTP, "streamable-http": mcpbridge.TransportHTTP,
	"streamableHttp": mcpbridge.TransportHTTP, "streamable_http": mcpbridge.TransportHTTP,
	"sse": mcpbridge.TransportSSE,
}

// parseServer parses one entry of mcpServers. Of one that is disabled it parses no
// more than that.
func parseServer(data json.RawMessage, env expander) (srv mcpbridge.Server, tools toolset.Server, err error) {
	var kind string
	var setup []json.RawMessage
	var metadata map[string]json.RawMessage
	err = decode(data, false, map[string]any{
		"command": &srv.Command, "args": &srv.Args, "env": &srv.Env, "cwd": &srv.Dir,
		"type": &kind, "transport": &kind, "url": &srv.URL, "headers": &srv.Headers,
		"protocolVersion": &srv.ProtocolVersion,
		"keepAlive":       &srv.KeepAlive, "maxResult": &srv.MaxResult, "noStream": &srv.NoStream,
		"setup": &setup, "disabled": &tools.Disabled, "allow": &tools.Allow, "deny": &tools.Deny,
		"displayName": &tools.DisplayName, "slug": &tools.Slug, "metadata": &metadata,
	})
	if err != nil || tools.Disabled {
		return srv, tools, err
	}
	for i, data := range setup {
		call, err := parseSetup(data, env)
		if err != nil {
			return srv, tools, named(fmt.Sprintf("setup[%d]", i), err)
		}
		srv.Setup = append(srv.Setup, call)
	}
	transport, known := transports[kind]
	switch {
	case !known:
		return srv, tools, named("type", fmt.Errorf("%q is none of stdio, http and sse", kind))
	case transport != "" && srv.URL == "":
		return srv, tools, named("url", fmt.Errorf("is empty, but type is %q", kind))
	case kind == "stdio" && srv.Command == "":
		return srv, tools, named("command", errors.New(`is empty, but type is "stdio"`))
	}
	srv.Transport = transport
	tools.Metadata, err = env.values("metadata", metadata)
	return srv, tools, errors.Join(
		err,
		env.expand("command", &srv.Command), env.expand("cwd", &srv.Dir), env.expand("url", &srv.URL),
		env.expandMap("env", srv.Env), env.expandMap("headers", srv.Headers), env.expandList("args", srv.Args),
		env.expand("displayName", &tools.DisplayName), env.expand("slug", &tools.Slug),
		env.patterns("allow", tools.Allow), env.patterns("deny", tools.Deny),
	)
}

// parseSetup parses one set-up call.
func parseSetup(data json.RawMessage, env expander) (*mcp.CallToolParams, error) {
	var tool string
	var arguments map[string]json.RawMessage
	if err := decode(data, true, map[string]any{"tool": &tool, "arguments": &arguments}); err != nil {
		return nil, err
	}
	if tool == "" {
		return nil, named("tool", errors.New("is missing"))
	}
	values, err := env.values("arguments", arguments)
	if values == nil {
		values = map[string]any{}
	}
	return &mcp.CallToolParams{Name: tool, Arguments: values}, err
}

// expander replaces ${VAR} and ${VAR:-default}.
type expander struct {
	lookup func(string) (string, bool)
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// expand replaces the variables in a field. What comes from a variable is not
// expanded again.
func (e expander) expand(field string, text *string) (err error) {
	*text = variable.ReplaceAllStringFunc(*text, func(match string) string {
		parts := variable.FindStringSubmatch(match)
		value, ok := e.lookup(parts[1])
		switch {
		case parts[2] != "" && value == "":
			return parts[3]
		case !ok && err == nil:
			err = named(field, fmt.Errorf("the environment variable %s is not set: set it, or write ${%s:-default}", parts[1], parts[1]))
		}
		return value
	})
	return err
}

func (e expander) expandMap(field string, values map[string]string) (err error) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name]
		err = errors.Join(err, e.expand(field+"."+name, &value))
		values[name] = value
	}
	return err
}

func (e expander) expandList(field string, values []string) (err error) {
	for i := range values {
		err = errors.Join(err, e.expand(fmt.Sprintf("%s[%d]", field, i), &values[i]))
	}
	return err
}

// patterns expands patterns of names, and reports those that are none.
func (e expander) patterns(field string, values []string) error {
	if err := e.expandList(field, values); err != nil {
		return err
	}
	for i, pattern := range values {
		name := fmt.Sprintf("%s[%d]", field, i)
		if pattern == "" {
			return named(name, errors.New("is empty"))
		}
		if _, err := path.Match(pattern, ""); err != nil {
			return named(name, fmt.Errorf("%q is no pattern: %w", pattern, err))
		}
	}
	return nil
}

// values decodes the fields of an object, and expands those that are strings. It is
// nil for one without fields.
func (e expander) values(field string, object map[string]json.RawMessage) (values map[string]any, err error) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		var value any
		if err := json.Unmarshal(object[name], &value); err != nil {
			return nil, named(field+"."+name, err)
		}
		if text, ok := value.(string); ok {
			if err := e.expand(field+"."+name, &text); err != nil {
				return nil, err
			}
			value = text
		}
		if values == nil {
			values = make(map[string]any, len(object))
		}
		values[name] = value
	}
	return values, nil
}

// repeated finds a key that an object has twice: encoding/json takes the last
// without a word.
func repeated(object json.RawMessage) (name string, twice bool) {
	dec := json.NewDecoder(bytes.NewReader(object))
	seen := map[string]bool{}
	dec.Token() //nolint:errcheck // it was parsed before: the opening brace
	for dec.More() {
		key, _ := dec.Token()
		name, _ = key.(string)
		if seen[name] {
			return name, true
		}
		seen[name] = true
		var skip json.RawMessage
		if dec.Decode(&skip) != nil {
			break
		}
	}
	return "", false
}

// joined makes of the errors of several fields one line.
func joined(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
