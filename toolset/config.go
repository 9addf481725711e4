package toolset

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/internal/limits"
	"github.com/mcpactor/mcpactor/internal/pattern"
	"github.com/mcpactor/mcpactor/messages"
)

// Config is the configuration of a toolset. It is read-only once given to [New].
type Config struct {
	// Scope is the scope whose sessions are used, unless [Filter.Scope] names another one.
	// Empty means [messages.DefaultScope].
	Scope string
	// Servers are the servers whose tools are wanted. An empty list gives no tools. An entry
	// that has the name of a server takes precedence over patterns. Of several patterns, the
	// first that matches applies.
	Servers []Filter
	// ListTimeout bounds how long [Toolset.Tools] waits for servers. A list that takes
	// longer is fetched in the background, within the supervisor's call timeout, and
	// the next call of Tools returns it. Defaults to 10 s; -1 is no limit.
	ListTimeout time.Duration
	// Stability says how the tools that the model is shown follow what servers have. Defaults to [Append].
	Stability Stability
	// Policy decides which calls are sent. Defaults to all calls. Toolsets may share one.
	Policy *Policy
	// MaxRepeats is how often a tool may be called with the same arguments and have the same result or error, one call after the other. The next
	// such call is not sent, and fails with [messages.CodeRateLimited], unless a minute has passed: a model that repeats itself costs money.
	// Any other call and any other result begin a new row. The toolset keeps the last result for that. Calls of messages from [Toolset.Approve] do not
	// count, nor does what the record of a durable call says. An answered call is always sent. Defaults to 50; -1 is no limit.
	MaxRepeats int
	// MaxText bounds the text of one result that [Toolset.Outcome] gives to a model, in bytes. Of a
	// longer one the middle is left out, and the model reads it with [ReadTool]. It is at least
	// 1,024. Defaults to 128 KiB; -1 means no bound.
	MaxText int
	// MaxData bounds the images, the audio and the other binary data of one result, in bytes. Each
	// counts at least 1 KiB. What exceeds it becomes a line of text. Defaults to 8 MiB; -1 means no
	// bound.
	MaxData int
}

// Filter selects the tools of one server, or of each server whose name matches a pattern,
// and sets their metadata.
type Filter struct {
	// Name is the server's name in the supervisor's configuration, or a pattern such as
	// "*" or "mail-*", in the form of Allow. A pattern also matches the servers that a
	// reload of the supervisor adds.
	Name string
	// Scope is the scope whose sessions are used, such as that of a user or one that all
	// conversations share. Defaults to [Config.Scope].
	Scope string
	// Disabled excludes the server: its tools are not listed.
	Disabled bool
	// Allow lists the tools that are wanted, by the name that the server gives them or
	// by a pattern of [path.Match] in which "*" and "?" match a slash as well. Defaults
	// to all tools.
	Allow []string
	// Deny lists the tools that are not wanted, in the same form. It takes precedence over
	// Allow. For example, "admin*" also matches the tool "admin/drop".
	Deny []string
	// ReadOnly leaves out the tools whose annotations do not say readOnlyHint. These are what the
	// server says of itself: do not trust them.
	ReadOnly bool

	// DisplayName is "display_name" in the metadata of each tool. Defaults to the
	// title of the tool, or else its name.
	DisplayName string
	// Slug is "slug" in the metadata of each tool. Defaults to the name of the server.
	Slug string
	// Metadata is added to the metadata of each tool, and replaces values of the same
	// name.
	Metadata map[string]any
}

// withDefaults returns a copy with all fields set.
func (c Config) withDefaults() Config {
	c.ListTimeout = cmp.Or(c.ListTimeout, 10*time.Second)
	c.Stability = cmp.Or(c.Stability, Append)
	c.MaxRepeats = cmp.Or(c.MaxRepeats, 50)
	c.MaxText = cmp.Or(c.MaxText, 128<<10)
	c.MaxData = cmp.Or(c.MaxData, 8<<20)
	return c
}

// validate reports the fields that are wrong, after withDefaults.
func (c Config) validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("toolset: "+format, args...)) }
	if err := (messages.Key{Scope: c.Scope}).Validate(); err != nil {
		wrong("%w", err)
	}
	if err := limits.Check("listTimeout", c.ListTimeout); err != nil {
		wrong("%w", err)
	}
	if err := limits.Check("maxRepeats", c.MaxRepeats); err != nil {
		wrong("%w", err)
	}
	if err := c.Stability.Validate(); err != nil {
		wrong("%w", err)
	}
	if c.MaxText < minText && c.MaxText != -1 {
		wrong("maxText: %d is less than %d, and not -1", c.MaxText, minText)
	}
	if c.MaxData < -1 {
		wrong("maxData: %d is negative, and not -1", c.MaxData)
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
func (f Filter) validate() error {
	if f.Name == "" {
		return errors.New("name: is empty: use that of a server of the supervisor")
	}
	if err := (messages.Key{Scope: f.Scope}).Validate(); err != nil {
		return err
	}
	for _, list := range []struct {
		field    string
		patterns []string
	}{{"allow", f.Allow}, {"deny", f.Deny}} {
		for i, wanted := range list.patterns {
			if err := pattern.Check(wanted); err != nil {
				return fmt.Errorf("%s[%d]: %q is not a pattern: %w", list.field, i, wanted, err)
			}
			if wanted == "" {
				return fmt.Errorf("%s[%d]: is empty", list.field, i)
			}
		}
	}
	return nil
}

// isPattern reports whether an entry may stand for several servers.
func (f Filter) isPattern() bool {
	return strings.ContainsAny(f.Name, `*?[\`) && pattern.Check(f.Name) == nil
}

// entryOf returns the entry for a server, or nil.
func (c Config) entryOf(server string) *Filter {
	var first *Filter
	for i := range c.Servers {
		entry := &c.Servers[i]
		if entry.Name == server {
			return entry
		}
		if first == nil && entry.isPattern() && pattern.Match(entry.Name, server) {
			first = entry
		}
	}
	return first
}

// serversOf returns the servers that an entry selects, out of the names of all servers.
func (c Config) serversOf(entry *Filter, names []string) (servers []string) {
	switch {
	case entry.Disabled:
	case !entry.isPattern():
		servers = []string{entry.Name}
	default:
		for _, name := range names {
			if c.entryOf(name) == entry {
				servers = append(servers, name)
			}
		}
	}
	return servers
}

// of returns the entry with the name and the scope of one server.
func (f Filter) of(server, scope string) Filter {
	f.Name, f.Scope = server, messages.Key{Scope: cmp.Or(f.Scope, scope)}.Normal().Scope
	return f
}

// Wants reports whether a tool passes the filters, by the name that the server gives it. readsOnly
// is its readOnlyHint.
func (f Filter) Wants(tool string, readsOnly bool) bool {
	match := func(wanted string) bool {
		return wanted == tool || pattern.Match(wanted, tool) // validate has checked the pattern
	}
	return (readsOnly || !f.ReadOnly) && (len(f.Allow) == 0 || slices.ContainsFunc(f.Allow, match)) && !slices.ContainsFunc(f.Deny, match)
}
