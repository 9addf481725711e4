package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
)

// loadConfig reads a configuration file: the mcpServers object that MCP clients
// share, and an optional supervisor object. Fields of a server that other
// clients have and we do not are ignored. Errors name the field.
func loadConfig(path string) (supervisor.Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return supervisor.Config{}, err
	}
	cfg, err := parseConfig(data, os.LookupEnv)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return cfg, err
}

// parseConfig parses a configuration; lookup finds environment variables.
func parseConfig(data []byte, lookup func(string) (string, bool)) (supervisor.Config, error) {
	var cfg supervisor.Config
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var servers, settings json.RawMessage
	if err := decode(data, false, map[string]any{"mcpServers": &servers, "supervisor": &settings}); err != nil {
		return cfg, err
	}
	if settings != nil {
		if err := decode(settings, true, settingsOf(&cfg)); err != nil {
			return cfg, named("supervisor", err)
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
		srv, disabled, err := parseServer(entries[name], expander{lookup})
		if err != nil {
			return cfg, named("mcpServers", named(name, err))
		}
		srv.Name = name
		if disabled {
			continue
		}
		if err := srv.Validate(); err != nil {
			return cfg, named("mcpServers", named(name, err))
		}
		cfg.Servers = append(cfg.Servers, srv)
	}
	if len(cfg.Servers) == 0 {
		return cfg, errors.New("mcpServers: has no server that is not disabled")
	}
	return cfg, nil
}

// settingsOf returns the fields of the supervisor object.
func settingsOf(cfg *supervisor.Config) map[string]any {
	return map[string]any{
		"maxSessions": &cfg.MaxSessions, "maxInFlight": &cfg.MaxInFlight,
		"maxWaiting": &cfg.MaxWaiting, "maxDials": &cfg.MaxDials,
		"idleTimeout": &cfg.IdleTimeout, "connectTimeout": &cfg.ConnectTimeout,
		"callTimeout": &cfg.CallTimeout, "drainTimeout": &cfg.DrainTimeout, "closeTimeout": &cfg.CloseTimeout,
		"backoffBase": &cfg.BackoffBase, "backoffMax": &cfg.BackoffMax,
		"budget": &cfg.Budget, "budgetHalfLife": &cfg.BudgetHalfLife, "coolDown": &cfg.CoolDown,
	}
}

// transports are the types of servers, with the names that other clients use.
var transports = map[string]string{
	"": "", "stdio": "",
	"http": mcpbridge.TransportHTTP, "streamable-http": mcpbridge.TransportHTTP,
	"streamableHttp": mcpbridge.TransportHTTP, "streamable_http": mcpbridge.TransportHTTP,
	"sse": mcpbridge.TransportSSE,
}

// parseServer parses one entry of mcpServers.
func parseServer(data json.RawMessage, env expander) (srv mcpbridge.Server, disabled bool, err error) {
	var kind string
	var setup []json.RawMessage
	err = decode(data, false, map[string]any{
		"command": &srv.Command, "args": &srv.Args, "env": &srv.Env, "cwd": &srv.Dir,
		"type": &kind, "transport": &kind, "url": &srv.URL, "headers": &srv.Headers,
		"disabled": &disabled, "protocolVersion": &srv.ProtocolVersion,
		"keepAlive": &srv.KeepAlive, "maxResult": &srv.MaxResult, "noStream": &srv.NoStream,
		"setup": &setup,
	})
	if err != nil || disabled {
		return srv, disabled, err
	}
	for i, data := range setup {
		call, err := parseSetup(data, env)
		if err != nil {
			return srv, false, named(fmt.Sprintf("setup[%d]", i), err)
		}
		srv.Setup = append(srv.Setup, call)
	}
	transport, known := transports[kind]
	switch {
	case !known:
		return srv, false, named("type", fmt.Errorf("%q is none of stdio, http and sse", kind))
	case transport != "" && srv.URL == "":
		return srv, false, named("url", fmt.Errorf("is empty, but type is %q", kind))
	case kind == "stdio" && srv.Command == "":
		return srv, false, named("command", errors.New(`is empty, but type is "stdio"`))
	}
	srv.Transport = transport
	err = errors.Join(
		env.expand("command", &srv.Command), env.expand("cwd", &srv.Dir), env.expand("url", &srv.URL),
		env.expandMap("env", srv.Env), env.expandMap("headers", srv.Headers),
	)
	for i := range srv.Args {
		err = errors.Join(err, env.expand(fmt.Sprintf("args[%d]", i), &srv.Args[i]))
	}
	return srv, false, err
}

// parseSetup parses one set-up call. Variables are expanded in the arguments that
// are strings.
func parseSetup(data json.RawMessage, env expander) (*mcp.CallToolParams, error) {
	var tool string
	var arguments map[string]json.RawMessage
	if err := decode(data, true, map[string]any{"tool": &tool, "arguments": &arguments}); err != nil {
		return nil, err
	}
	if tool == "" {
		return nil, named("tool", errors.New("is missing"))
	}
	values := make(map[string]any, len(arguments))
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		var value any
		if err := json.Unmarshal(arguments[name], &value); err != nil {
			return nil, named("arguments."+name, err)
		}
		if text, ok := value.(string); ok {
			if err := env.expand("arguments."+name, &text); err != nil {
				return nil, err
			}
			value = text
		}
		values[name] = value
	}
	return &mcp.CallToolParams{Name: tool, Arguments: values}, nil
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
