package adopt

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// neutral are the fields of a server at a URL that mean the same for a command.
var neutral = []string{
	"type", "source", "description", "enabled", "disabled", "required", "timeout", "initTimeout", "startup_timeout_sec", "tool_timeout_sec",
	"trust", "alwaysAllow", "autoApprove", "tools", "allow", "deny", "includeTools", "excludeTools", "enabledTools", "disabledTools", "enabled_tools", "disabled_tools",
	"serverInstructions", "chatMenu", "startup", "gallery", "version",
}

// form is how a client writes a server at a URL, and the type of a command in its place.
type form struct{ field, kind, local string }

// form returns the form of an entry. It depends on what both adopt and undo leave as it is.
func (d *document) form(kind string) form {
	switch folder := filepath.Base(filepath.Dir(d.path)); {
	case kind == "remote" || kind == "local": // of opencode
		return form{"url", "remote", "local"}
	case folder == ".gemini" && kind == "":
		return form{field: "httpUrl"}
	case filepath.Base(d.path) == "mcp_config.json": // of Windsurf
		return form{field: "serverUrl"}
	case strings.HasPrefix(filepath.Ext(d.path), ".y"): // of LibreChat
		return form{"url", "streamable-http", "stdio"}
	}
	return form{"url", "http", "stdio"}
}

// adoptURL makes a server at a URL a command. What could be a secret must not be in its arguments, which other users see.
func (d *document) adoptURL(entry *value, f *field, words []string) ([]edit, string) {
	kind := entry.textOf("type")
	form := d.form(kind)
	u, err := url.Parse(f.value.text)
	switch {
	case f.name != form.field:
		return nil, "its URL is in " + f.name + ", not in " + form.field + ": change it by hand"
	case kind != "" && kind != form.kind:
		return nil, "its type is " + kind + ": change it by hand"
	case isHTTP(f.value.text) && strings.ContainsAny(f.value.text, "${#"): // a variable, as in ${KEY} and {env:KEY}
		return nil, "its URL has a variable or a fragment, which may be a secret, and which other users would see among the processes"
	case err != nil || !isHTTP(f.value.text):
		return nil, "its URL does not begin with https:// or http://: change it by hand"
	case u.User != nil || u.RawQuery != "":
		return nil, "its URL may have a secret, which other users would see among the processes"
	}
	for _, name := range []string{"oauth", "auth"} {
		if entry.field(name) != nil {
			return nil, "it has " + name + `: change it by hand to the arguments "serve" and the URL, and run mcpactor login with the URL`
		}
	}
	for _, f := range entry.fields {
		if f.name != form.field && !slices.Contains(neutral, f.name) {
			return nil, "it has " + f.name + `: change it by hand to the arguments "serve", "--header", "NAME=${VAR}" and the URL, with VAR in its env`
		}
	}
	words = append(words, d.raw(f.value))
	edits := []edit{{f.start, f.value.end, d.starting(entry, f, words)}}
	if kind == "remote" { // the command is a list
		edits[0].text = d.like(f, "command", "["+strings.Join(words, ", ")+"]")
	}
	return d.retyped(edits, entry, form.kind, form.local), ""
}

// undoURL makes a command that adoptURL has written a server at a URL again.
func (d *document) undoURL(entry *value, l launch, rawURL string) ([]edit, string) {
	form := d.form(entry.textOf("type"))
	last := l.command
	if l.command.value.kind == text {
		last = l.args
		if !l.addedArgs() {
			return nil, notOurs
		}
	}
	edits := []edit{{l.command.start, last.value.end, d.like(l.command, form.field, rawURL)}}
	return d.retyped(edits, entry, form.local, form.kind), ""
}

// retyped adds the edit of the type of an entry, if there is one.
func (d *document) retyped(edits []edit, entry *value, from, to string) []edit {
	if f := entry.field("type"); f != nil && f.value.kind == text {
		edits = append(edits, edit{f.value.start, f.value.end, reworded(d.raw(f.value), from, to)})
	}
	return edits
}
