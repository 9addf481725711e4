// Package handleguess guesses from the names and the schemas of tools which of them mint handles that others release. A guess is for a
// person to check: nothing uses it, see [mcpbridge.Handle].
package handleguess

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Guess is a declaration that fits the tools of a server. Its JSON is that of a file. Without a Path, it lacks one, or a pattern. Its
// names are safe for a terminal.
type Guess struct {
	Mint     string `json:"mint"`
	Path     string `json:"path,omitempty"`
	Release  string `json:"release"`
	Argument string `json:"argument"`

	// Instead are other tools that may release it, and Lists those that may list what there is.
	Instead []string `json:"-"`
	Lists   []string `json:"-"`
}

// most is how many guesses there are for one server, and mostTools how many of its tools are read.
const most, mostTools = 20, 2048

// ends are the verbs that end what a verb begins, the gentlest first.
var ends = map[string][]string{
	"open":     {"close"},
	"new":      {"close"},
	"create":   {"close", "end", "stop", "terminate", "destroy", "dispose", "delete", "remove", "kill"},
	"start":    {"stop", "end", "close", "terminate", "kill"},
	"begin":    {"end", "stop", "close"},
	"launch":   {"close", "quit", "stop", "terminate", "kill"},
	"spawn":    {"stop", "terminate", "kill"},
	"run":      {"stop", "terminate", "kill"},
	"connect":  {"disconnect", "close"},
	"attach":   {"detach"},
	"acquire":  {"release"},
	"allocate": {"release", "free"},
	"":         {"stop"}, // port_forward, stop_port_forward
}

var (
	// deletes are the verbs that may end what should stay, such as a document. They count only for what is passing.
	deletes = []string{"destroy", "delete", "remove"}
	passing = []string{"browser", "kernel", "process", "sandbox", "session", "shell", "tab", "terminal", "tunnel", "window"}
)

// safe matches the names that need no escape, neither in a file nor on a terminal.
var safe = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,128}$`)

// Of returns the guesses for the tools of a server, sorted by the tool that mints. There is none for a tool that a declaration names as
// such.
func Of(tools []*mcp.Tool, declared []mcpbridge.Handle) (all []Guess) {
	var ours []tool
	for _, t := range tools[:min(len(tools), mostTools)] {
		if t != nil && safe.MatchString(t.Name) {
			ours = append(ours, read(t))
		}
	}
	slices.SortFunc(ours, func(a, b tool) int { return cmp.Compare(a.Name, b.Name) })
	for _, mint := range ours {
		if len(all) == most || slices.ContainsFunc(declared, func(h mcpbridge.Handle) bool { return h.Mint == mint.Name }) {
			continue
		}
		if g, found := guess(&mint, ours); found {
			all = append(all, g)
		}
	}
	return all
}

// release is a tool that may release what another one mints.
type release struct {
	tool
	rank int // the lowest is the best
}

// guess returns what fits best to a tool, if it mints.
func guess(mint *tool, tools []tool) (g Guess, found bool) {
	var releases []release
	var thing []string
	for _, begin := range append(mint.words, "") {
		if len(releases) > 0 {
			break
		}
		thing = without(mint.words, begin)
		for _, t := range tools {
			if rank, ends := t.ends(mint, thing, ends[begin]); ends {
				releases = append(releases, release{t, rank})
			}
		}
	}
	if len(releases) == 0 {
		return g, false
	}
	slices.SortStableFunc(releases, func(a, b release) int { return a.rank - b.rank })
	best := releases[0]
	g = Guess{Mint: mint.Name, Path: mint.pathOf(best.id), Release: best.Name, Argument: best.id}
	for _, other := range releases[1:] {
		if other.id == best.id {
			g.Instead = append(g.Instead, other.Name)
		}
	}
	for _, t := range tools {
		if t.lists(thing) || t.lists(stem(best.id)) {
			g.Lists = append(g.Lists, t.Name)
		}
	}
	return g, true
}

// ends reports whether a tool may end a thing that a mint begins, by one of some verbs: its name is that of the thing, or its argument is.
func (t *tool) ends(mint *tool, thing, verbs []string) (rank int, ends bool) {
	if t.id == "" || slices.Contains(mint.arguments, t.id) {
		return 0, false
	}
	for i, verb := range verbs {
		if !slices.Contains(t.words, verb) || slices.Contains(deletes, verb) && !slices.ContainsFunc(thing, isPassing) {
			continue
		}
		named, of := without(t.words, verb, "force"), stem(t.id)
		switch {
		case same(named, thing) && isID(t.id):
			return 2 * i, true
		case within(named, thing) && len(of) > 0 && within(of, thing):
			return 2*i + 1, true
		}
	}
	return 0, false
}

func isPassing(word string) bool { return slices.Contains(passing, word) }

// lists reports whether a tool lists things of a kind.
func (t *tool) lists(thing []string) bool {
	return slices.Contains(t.words, "list") && len(t.required) == 0 && len(thing) > 0 && same(without(t.words, "list"), thing)
}
