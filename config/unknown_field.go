package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/mcpactor/mcpactor/internal/nearest"
)

// strict reads an object that only this package has. An unknown field is an error.
func (r *reader) strict(n *node, targets map[string]any) {
	r.fields(n, targets, func(field *node) {
		known := slices.Sorted(maps.Keys(targets))
		if name := nearest.Of(field.name, known); name != "" {
			r.fail(field, "is not a field: did you mean %q?", name)
			return
		}
		r.fail(field, "is not a field; the fields are %s", strings.Join(known, ", "))
	})
}

// ownFile is the remedy for an unsupported field beside the servers, in a file of another client.
const ownFile = "put the servers into a file of their own, with allow, deny and disabled"

// unknownInServer reports an unknown field of a server: as an error if it may be misspelt or
// restrict the server, else as a warning.
func (r *reader) unknownInServer(n *node) {
	if name := nearest.Of(n.name, slices.Sorted(maps.Keys((&entry{}).fields()))); name != "" {
		r.fail(n, "is not a field: did you mean %q?", name)
		return
	}
	if restricts(n, stems) {
		r.fail(n, "may restrict the server, but is not supported: use allow, deny or disabled, or remove it")
		return
	}
	r.unknown(n)
}

// unknownInFile reports an unknown field beside the servers, in the same way.
func (r *reader) unknownInFile(n *node, known []string) {
	switch name := nearest.Of(n.name, known); {
	case n.name == "$schema" || n.kind == isNull:
		return
	case name != "" && n.name != "server": // server is a field of opencode
		r.fail(n, "is not a field: did you mean %q?", name)
		return
	case slices.Contains(switches, nearest.Plain(n.name)) && restricts(n, switches):
		r.fail(n, "may restrict the servers, but is not supported: %s", ownFile)
		return
	}
	r.unknown(n)
}

// unknown reports a field of another client: as an error if anything in it restricts tools or
// servers, else as a warning.
func (r *reader) unknown(n *node) {
	if found := r.restriction(n); found != nil {
		r.fail(found, "may restrict tools or servers, but is not supported: %s", ownFile)
		return
	}
	r.warn(n, "has no effect")
}

// restriction returns the first field in n that restricts tools or servers, at any depth, or nil.
func (r *reader) restriction(n *node) *node {
	name := nearest.Plain(n.name)
	switch {
	case slices.Contains(words, name) || slices.Contains(inObject[nearest.Plain(n.parent.name)], name):
		if !restricts(n, []string{name}) || name == "chatmcpaccess" && n.text == "all" {
			return nil
		}
		return n
	case r.opencode && r.restrictsByName(n),
		!r.opencode && n.kind == isText && nearest.Plain(n.text) == "deny":
		return n
	}
	for _, item := range n.items {
		if found := r.restriction(item); found != nil {
			return found
		}
	}
	return nil
}

var (
	// words are the names of the fields with which clients restrict tools or servers,
	// anywhere in a file. They are in lower case, without punctuation.
	words = []string{
		"deny", "denied", "denylist", "denytools", "deniedtools", "blockedtools", "disabledtools", "disallowedtools",
		"excludetools", "excludedtools", "alwaysdeny", "toolfilter", "toolfilters", "allowlist",
		"allowtools", "allowedtools", "enabledtools", "includetools", "includedtools", "coretools",
		"allowmcpservers", "allowedmcpservers", "excludemcpservers", "deniedmcpservers", "disabledmcpservers",
		"disabledmcpjsonservers", "enabledmcpjsonservers", "contextservers", "enableallcontextservers",
		"chatmcpenabled", "chatmcpaccess",
	}
	// inObject has the names of fields that restrict tools or servers in an object of a certain
	// name.
	inObject = map[string][]string{
		"tools":       {"exclude", "excluded", "core"},
		"mcpsettings": {"alloweddomains", "allowedaddresses"}, // of LibreChat
	}
	// switches are names of fields that restrict the servers if they are beside them.
	switches = append([]string{"disabled", "disable", "enabled", "enable", "allow", "allowed", "isactive", "sandbox", "sandboxenabled", "readonly"}, words...)
	// stems are parts of the names of fields that restrict a server or its tools. The
	// stems from "enab" on are those of fields that allow something.
	stems = []string{
		"deny", "denied", "disab", "disallow", "exclu", "block", "forbid", "restrict", "filter", "permission", "sandbox", "readonly", "blacklist",
		"enab", "isactive", "inclu", "allow", "whitelist", "tools",
	}
)

// restricts reports whether the name of a field contains one of words, and its value restricts
// something. A neutral value restricts nothing. Neither does false in a field that forbids, nor
// true in a field that allows.
func restricts(n *node, words []string) bool {
	name := nearest.Plain(n.name)
	if strings.Contains(name, "approve") || strings.HasPrefix(name, "alwaysallow") { // permits a tool without asking the user, as this module always does
		return false
	}
	has := func(word string) bool { return strings.Contains(name, word) }
	if !slices.ContainsFunc(words, has) || neutral(n) {
		return false
	}
	forbids := slices.ContainsFunc(stems[:slices.Index(stems, "enab")], has)
	return n.kind != isBoolean || forbids == (n.text == "true")
}

// neutral reports whether a value is null or empty, or has only such values.
func neutral(n *node) bool {
	switch n.kind {
	case isNull:
		return true
	case isText:
		return n.text == ""
	case isList, isObject:
		return !slices.ContainsFunc(n.items, func(item *node) bool { return !neutral(item) })
	}
	return false
}
