package toolset

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// Config is the configuration of a toolset. It is read-only once given to [New].
type Config struct {
	// Scope is the scope whose sessions are used. Empty means [messages.DefaultScope].
	Scope string
	// Servers are the servers whose tools are wanted. An empty list gives no tools.
	Servers []Server
	// ListTimeout bounds how long [Toolset.Tools] waits for servers. A list that takes
	// longer is fetched in the background, within the supervisor's call timeout, and
	// the next call of Tools returns it. Defaults to 10 s.
	ListTimeout time.Duration
}

// Server selects the tools of one server and sets their metadata.
type Server struct {
	// Name is the server's name in the supervisor's configuration.
	Name string
	// Disabled excludes the server: its tools are not listed.
	Disabled bool
	// Allow lists the tools that are wanted, by the name that the server gives them or
	// by a pattern of [path.Match] in which "*" and "?" match a slash as well. Defaults
	// to all tools.
	Allow []string
	// Deny lists the tools that are not wanted, in the same form. It takes precedence over
	// Allow. For example, "admin*" also matches the tool "admin/drop".
	Deny []string

	// DisplayName is "display_name" in the metadata of each tool. Defaults to the
	// title of the tool, or else its name.
	DisplayName string
	// Slug is "slug" in the metadata of each tool. Defaults to Name.
	Slug string
	// Metadata is added to the metadata of each tool, and replaces values of the same
	// name.
	Metadata map[string]any
}

// withDefaults returns a copy with all fields set.
func (c Config) withDefaults() Config {
	if c.ListTimeout == 0 {
		c.ListTimeout = 10 * time.Second
	}
	return c
}

// validate reports the fields that are wrong, after withDefaults.
func (c Config) validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("toolset: "+format, args...)) }
	if err := (messages.Key{Scope: c.Scope}).Validate(); err != nil {
		wrong("%w", err)
	}
	if c.ListTimeout < 0 {
		wrong("listTimeout: %v is negative", c.ListTimeout)
	}
	seen := map[string]int{}
	for i, srv := range c.Servers {
		if err := srv.validate(); err != nil {
			wrong("servers[%d] %q: %w", i, srv.Name, err)
		}
		if first, ok := seen[srv.Name]; ok {
			wrong("servers[%d] %q: name: is already that of servers[%d]", i, srv.Name, first)
			continue
		}
		seen[srv.Name] = i
	}
	return errors.Join(errs...)
}

// validate reports the first field that is wrong.
func (s Server) validate() error {
	if s.Name == "" {
		return errors.New("name: is empty: use that of a server of the supervisor")
	}
	for _, list := range []struct {
		field    string
		patterns []string
	}{{"allow", s.Allow}, {"deny", s.Deny}} {
		for i, pattern := range list.patterns {
			if err := checkPattern(pattern); err != nil {
				return fmt.Errorf("%s[%d]: %q is not a pattern: %w", list.field, i, pattern, err)
			}
			if pattern == "" {
				return fmt.Errorf("%s[%d]: is empty", list.field, i)
			}
		}
	}
	return nil
}

// wants reports whether a tool passes the filters.
func (s Server) wants(tool string) bool {
	match := func(pattern string) bool {
		return pattern == tool || matches(pattern, tool) // validate has checked the pattern
	}
	return (len(s.Allow) == 0 || slices.ContainsFunc(s.Allow, match)) && !slices.ContainsFunc(s.Deny, match)
}
