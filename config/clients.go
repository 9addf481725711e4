package config

import (
	"maps"
	"path"
	"slices"
)

// clients reads the object clients.
func (r *reader) clients(n *node) {
	r.fields(n, nil, func(field *node) {
		c := Client{Name: field.name}
		if _, err := path.Match(c.Name, ""); err != nil || c.Name == "" {
			r.fail(field, "is neither the name of a client nor a pattern")
		}
		var allow, deny *node
		r.strict(field, map[string]any{"allow": &allow, "deny": &deny, "readOnly": &c.ReadOnly})
		if c.Allow = r.ofClient(allow); allow != nil && allow.kind == isList && len(allow.items) == 0 {
			r.fail(allow, `is empty: remove it to allow all tools, or deny "*" to allow none`)
		}
		c.Deny = r.ofClient(deny)
		r.file.Clients = append(r.file.Clients, c)
	})
}

// ofClient reads a list of patterns on the tools of all servers, or returns none if it is nil.
func (r *reader) ofClient(n *node) (patterns []Pattern) {
	var texts []string
	if before := len(r.errs); n != nil {
		if r.into(n, &texts); len(r.errs) > before {
			return nil
		}
	}
	for i, text := range texts {
		p, err := ParsePattern(text)
		if err != nil {
			r.fail(n.items[i], "%w", err)
		} else if !slices.ContainsFunc(slices.Sorted(maps.Keys(r.names)), p.Fits) {
			r.warn(n.items[i], "is for no server that is enabled: write */%s for a tool whose name has a slash", n.items[i].text)
		}
		patterns = append(patterns, p)
	}
	return patterns
}
