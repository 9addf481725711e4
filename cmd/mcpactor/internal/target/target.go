// Package target is the part of a command line that says which servers a command is about: one at a URL, one that a command
// runs, or those of a configuration file.
package target

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/browser"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/pin"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// Flags are the flags beside the URL or the command, which are arguments.
type Flags struct {
	Config string            `placeholder:"FILE" help:"File with the servers, such as .mcp.json."`
	Inputs inputs.Flags      `embed:""`
	Header map[string]string `mapsep:"none" placeholder:"NAME=VALUE" help:"Header for the URL. $${VAR} is an environment variable."`

	// Pins is the lock file that was loaded before the servers, or nil.
	Pins *inputs.Pins `kong:"-"`
	// Accept is asked about each server in place of the lock file.
	Accept func(server string, is pin.Identity) error `kong:"-"`
}

// Load returns the configuration of a file, or of the server at a URL or of the command after "--", and the words that are left. words are
// those of the command line before "--" that are no flags. A person logs in by another command.
func (f *Flags) Load(p *cli.Program, words []string) (file *config.File, rest []string, err error) {
	server, rest := p.After, words
	switch {
	case server != nil && len(server) == 0:
		return nil, nil, cli.Usagef("write the command of the server after --")
	case server == nil && len(words) > 0 && isURL(words[0]):
		server, rest = words[:1], words[1:]
	}
	if err := f.Check(server); err != nil {
		if len(rest) > 0 && f.Config == "" {
			if u, parseErr := url.Parse("http://" + rest[0]); parseErr == nil && u.Port() != "" {
				return nil, nil, cli.Usagef("%q is no URL: did you mean %q?", rest[0], u)
			}
			err = cli.Usagef("%q is no URL: %w", rest[0], err)
		}
		return nil, nil, err
	}
	if f.Config != "" {
		loader := inputs.NewLoader(f.Inputs, p)
		loader.Accept = f.Accept
		file, err = loader.First(f.Config)
		f.Pins = loader.Pins
		return file, rest, err
	}
	srv, err := f.ServerOf(server)
	if err != nil {
		return nil, nil, err
	}
	file = &config.File{Supervisor: supervisor.Config{Servers: []mcpbridge.Server{srv}}, Tools: []toolset.Filter{{Name: srv.Name}}}
	remedy := "run: mcpactor login " + srv.URL
	if strings.Contains(srv.URL, "?") {
		remedy = "run: mcpactor login URL" // a query may have a secret
	}
	logins := browser.Logins{Options: func(string) browser.Options { return browser.Options{Remedy: remedy} }}
	logins.Attach(file.Supervisor.Servers)
	return file, rest, nil
}

// Check returns an error unless there is either a server, which is a URL or the words of a command, or a file.
func (f *Flags) Check(server []string) error {
	switch {
	case f.Config == "" && len(server) == 0:
		return cli.Usagef("give a URL, or a command after --, or --config FILE")
	case f.Config != "" && len(server) > 0:
		return cli.Usagef("give a server or --config, not both")
	case f.Config != "" && len(f.Header) > 0:
		return cli.Usagef("--header: is for a server at a URL: write headers into the file")
	case f.Config == "" && len(f.Inputs.Input) > 0:
		return cli.Usagef("--input: is for --config FILE")
	}
	return nil
}

// isURL reports whether a word is the URL of a server.
func isURL(word string) bool {
	return strings.HasPrefix(word, "http:") || strings.HasPrefix(word, "https:")
}

// ServerOf returns the server at a URL, or that of a command.
func (f *Flags) ServerOf(server []string) (mcpbridge.Server, error) {
	first := server[0]
	if first == "" {
		return mcpbridge.Server{}, cli.Usagef("the command of the server is empty: write a command after --, or a URL")
	}
	if !isURL(first) {
		if len(f.Header) > 0 {
			return mcpbridge.Server{}, cli.Usagef("--header: is for a server at a URL")
		}
		// What the client has set for the server is in our environment.
		srv := mcpbridge.Server{Name: nameOf(server), Command: first, Args: server[1:], InheritEnv: true}
		return srv, f.accepts(srv.Name, pin.Identity{Command: server})
	}
	switch {
	case len(server) > 1 && strings.HasPrefix(server[1], "-"):
		return mcpbridge.Server{}, cli.Usagef("%s: write flags before the URL", server[1])
	case len(server) > 1:
		return mcpbridge.Server{}, cli.Usagef("give one URL: %q is too much", server[1])
	}
	u, err := url.Parse(first)
	if err != nil || u.Hostname() == "" {
		return mcpbridge.Server{}, cli.Usagef("the URL is malformed: write it as in https://example.com/mcp")
	}
	srv := mcpbridge.Server{Name: visible.Name(u.Hostname()), URL: first, Headers: map[string]string{}}
	for name, value := range f.Header {
		if srv.Headers[name], err = expand(value); err != nil {
			return srv, cli.Usagef("--header: %s: %w", name, err)
		}
	}
	return srv, f.accepts(srv.Name, pin.Identity{URL: first})
}

// accepts reads the lock file that the command line names, and returns an error unless it has just this server: without it, nothing
// would be pinned.
func (f *Flags) accepts(server string, is pin.Identity) (err error) {
	if f.Accept != nil {
		return f.Accept(server, is)
	}
	if f.Pins, err = inputs.OpenPins(f.Inputs.Pin, ""); err != nil || f.Pins == nil {
		return err
	}
	if f.Pins.Lock().Servers[server] == nil {
		return cli.Usagef("--pin: %s has no server %q: mcpactor pin --accept, with the same --pin and the same server, adds it", f.Inputs.Pin, server)
	}
	if err := f.Pins.Identity(server, is); err != nil {
		return cli.Usagef("--pin: %s: %w", f.Inputs.Pin, err)
	}
	return nil
}

// variable matches an environment variable in a header.
var variable = regexp.MustCompile(`\$\{(\w+)\}`)

// expand replaces the environment variables in a text.
func expand(text string) (expanded string, err error) {
	return variable.ReplaceAllStringFunc(text, func(match string) string {
		name := match[2 : len(match)-1]
		value, set := os.LookupEnv(name)
		if !set {
			err = fmt.Errorf("the environment variable %s is not set", name)
		}
		return value
	}), err
}
