package adopt

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// change puts serve before a server, or takes it away: it returns the edits, or why there are none.
type change func(d *document, s server) (edits []edit, why string)

// Why an entry stays as it is.
const (
	isAdopted  = "runs mcpactor serve already"
	notAdopted = "does not run mcpactor serve"
	notOurs    = "adopt has not written its command: change it by hand"
	needsPath  = "its client may not find npx: install mcpactor, as with npm install -g mcpactor, and run mcpactor adopt"
	isOdd      = "it is not written in a way that can be changed: change it by hand"
)

// changed returns the document with one of its servers changed, if nothing else changes: neither what runs behind serve, nor another
// server. What is adopted can be undone, byte for byte.
func (d *document) changed(i int, c change) (next *document, why string) {
	next, why = d.with(i, c)
	if why != "" || len(next.servers) != len(d.servers) {
		return d, cmp.Or(why, isOdd)
	}
	for j, s := range d.servers {
		was, is := s.launch(), next.servers[j].launch()
		changed := (was.before > 0) != (is.before > 0)
		if changed != (i == j) || !slices.Equal(was.server(), is.server()) {
			return d, isOdd
		}
	}
	if next.servers[i].launch().before > 0 {
		if back, why := next.with(i, undo); why != "" || !bytes.Equal(back.data, d.data) {
			return d, isOdd
		}
	}
	return next, ""
}

// with returns the document with a change of one of its servers.
func (d *document) with(i int, c change) (next *document, why string) {
	edits, why := c(d, d.servers[i])
	if why != "" {
		return nil, why
	}
	if next, err := d.edited(edits); err == nil {
		return next, ""
	}
	return nil, isOdd
}

// adopter puts a program before a server.
func adopter(p program) change {
	return func(d *document, s server) ([]edit, string) {
		l := s.launch()
		words := quoted(append(slices.Clone(p.words), "serve"))
		switch {
		case l.serve > 0:
			return nil, isAdopted
		case l.command == nil && l.url == nil:
			return nil, "it has neither a command nor a URL"
		case l.command != nil && l.url != nil:
			return nil, "it has a command and a URL: remove one of them"
		case l.url != nil:
			return d.adoptURL(s.entry, l.url, words)
		case l.words == nil:
			return nil, isOdd
		case strings.TrimSpace(l.words[0]) == "":
			return nil, "its command is empty: write the name or the path of a program"
		case isCommandLine(l.words[0]):
			return nil, "its command has arguments: put them into args"
		case strings.HasPrefix(l.words[0], "~"):
			return nil, "its command begins with ~, which few clients replace in args: write the whole path"
		case l.withoutPath(s.entry) && p.path == "":
			return nil, needsPath
		case l.withoutPath(s.entry):
			words = quoted([]string{p.path, "serve"})
		}
		words = append(words, quote("--"))
		if l.command.value.kind == list { // of opencode
			return []edit{d.prepended(l.command.value, words)}, ""
		}
		words = append(words, d.raw(l.command.value))
		switch {
		case l.args == nil:
			return []edit{{l.command.start, l.command.value.end, d.starting(l.holder, l.command, words)}}, ""
		case l.args.value.kind == list:
			return []edit{{l.command.value.start, l.command.value.end, words[0]}, d.prepended(l.args.value, words[1:])}, ""
		}
		return nil, isOdd
	}
}

// undo takes serve away from a server.
func undo(d *document, s server) ([]edit, string) {
	l := s.launch()
	switch {
	case l.serve == 0:
		return nil, notAdopted
	case l.before == 0 || l.url != nil:
		return nil, notOurs
	}
	rest := l.parts[l.before:]
	isURL := l.before == l.serve+1
	switch {
	case isURL:
		return d.undoURL(s.entry, l, d.raw(rest[0]))
	case l.command.value.kind == list:
		return []edit{d.dropped(l.command.value, l.before)}, ""
	case len(rest) == 1 && l.addedArgs():
		return []edit{{l.command.start, l.args.value.end, d.like(l.command, l.command.name, d.raw(rest[0]))}}, ""
	}
	return []edit{{l.command.value.start, l.command.value.end, d.raw(rest[0])}, d.dropped(l.args.value, l.before)}, ""
}

// prepended puts words before the items of a list, in its style. In an empty list they come after a blank.
func (d *document) prepended(v *value, words []string) edit {
	if len(v.items) == 0 {
		return edit{v.start + 1, v.start + 1, " " + strings.Join(words, ", ")}
	}
	first := v.items[0].start
	between := d.lead(first)
	switch {
	case v.lines:
		between = d.lead(first-len(between)-1) + "-" + between
	case strings.Contains(between, "\n"):
		between = "," + between
	case len(v.items) > 1 && d.lead(v.items[1].start) == "":
		between = ","
	default:
		between = ", "
	}
	return edit{first, first, strings.Join(words, between) + between}
}

// dropped removes the first items of a list.
func (d *document) dropped(v *value, n int) edit {
	if n < len(v.items) {
		return edit{v.items[0].start, v.items[n].start, ""}
	}
	return edit{v.start + 1, v.items[n-1].end, ""}
}

// starting returns the fields command and args with words in place of a field, in its style.
func (d *document) starting(holder *value, f *field, words []string) string {
	assigns := string(d.data[f.end:f.value.start])
	blank := assigns[len(strings.TrimRight(assigns, " ")):]
	separator := d.lead(f.start)
	switch {
	case strings.Contains(separator, "\n"):
	case holder.lines:
		separator = "\n"
	default:
		separator = blank
	}
	if !holder.lines {
		separator = "," + separator
	}
	name := f.name
	if name != "path" {
		name = "command"
	}
	return d.like(f, name, words[0]) + separator + d.like(f, "args", "["+strings.Join(words[1:], ","+blank)+"]")
}

// addedArgs reports whether the args of an entry are as starting writes them: right after the command, and not after a blank.
func (l launch) addedArgs() bool {
	after := slices.Index(l.holder.fields, l.args) - slices.Index(l.holder.fields, l.command)
	return after == 1 && !l.args.value.lines && l.args.value.items[0].start == l.args.value.start+1
}

// isCommandLine reports whether a command seems to have arguments: a blank after a name, while that in a path may be of a folder.
func isCommandLine(command string) bool {
	name, _, blank := strings.Cut(command, " ")
	return blank && !strings.ContainsAny(name, `/\~$%`)
}

// quote writes a word so that JSON, YAML and TOML understand it.
func quote(word string) string { return string(hujson.String(word)) }

func quoted(words []string) (all []string) {
	for _, word := range words {
		all = append(all, quote(word))
	}
	return all
}
