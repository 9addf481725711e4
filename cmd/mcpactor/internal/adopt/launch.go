package adopt

import (
	"path"
	"slices"
	"strings"
)

// server is the entry of a server in a file.
type server struct {
	name  string
	where string // " (in FOLDER)" if it is of a project of Claude Code
	entry *value
}

// servers returns the servers of a file, in its order.
func servers(root *value) (found []server) {
	add := func(where string, servers *value) {
		for _, f := range servers.fields {
			if f.value.kind == object {
				found = append(found, server{f.name, where, f.value})
			}
		}
	}
	for _, name := range []string{"mcpServers", "servers", "context_servers", "mcp_servers"} {
		add("", root.object(name))
	}
	mcp := root.object("mcp") // of opencode, or of the settings of VS Code
	if inner := mcp.object("servers"); inner.textOf("type") == "" && inner.fields != nil {
		mcp = inner
	}
	add("", mcp)
	for _, project := range root.object("projects").fields {
		add(" (in "+project.name+")", project.value.object("mcpServers"))
	}
	return found
}

// launch is how an entry starts its server.
type launch struct {
	holder             *value   // the object with the fields: in former files of Zed, that in command
	command, args, url *field   // or nil
	parts              []*value // the command and its arguments
	words              []string // their texts
	serve              int      // which of them is the command serve of this program, or 0
	before             int      // how many of them adopt has put before the server, or 0
}

// launch reads how an entry starts its server.
func (s server) launch() launch {
	l := launch{holder: s.entry}
	for _, name := range []string{"serverUrl", "httpUrl", "url"} {
		if f := s.entry.field(name); f != nil {
			l.url = f
		}
	}
	program := "command"
	if former := s.entry.object("command"); former.fields != nil {
		l.holder, program = former, "path"
	}
	l.command, l.args = l.holder.field(program), l.holder.field("args")
	if l.command == nil {
		return l
	}
	l.parts = l.command.value.items
	if l.command.value.kind == text {
		l.parts = []*value{l.command.value}
		if l.args != nil {
			l.parts = append(l.parts, l.args.value.items...)
		}
	}
	for i, part := range l.parts {
		l.words = append(l.words, part.text)
		if l.serve == 0 && part.text == "serve" && i > 0 && isProgram(l.words[i-1]) {
			l.serve = i
		}
	}
	switch end := slices.Index(l.words, "--"); {
	case l.serve == 0 || !isWritten(l.words[:l.serve]):
	case end > l.serve && end+1 < len(l.words):
		l.before = end + 1
	case end < 0 && len(l.words) == l.serve+2 && isHTTP(l.words[l.serve+1]):
		l.before = l.serve + 1
	}
	return l
}

// server returns what serve stands before, or would: the words of a command, or a URL.
func (l launch) server() []string {
	if l.command == nil && l.url != nil {
		return []string{l.url.value.text}
	}
	return l.words[l.before:]
}

// dropped returns the flags of serve that somebody has added, and that go with it.
func (l launch) dropped() []string { return l.words[l.serve+1 : max(l.serve+1, l.before-1)] }

// isWritten reports whether wordsFor has words such as these, which start this program.
func isWritten(words []string) bool {
	last := len(words) - 1
	before := strings.Join(words[:last], " ")
	byNpx := words[last] == "mcpactor" || strings.HasPrefix(words[last], "mcpactor@")
	return before == "" && isProgram(words[last]) || byNpx && slices.Contains([]string{"cmd /c", "npx -y", "cmd /c npx -y"}, before)
}

// isProgram reports whether a word names this program, such as mcpactor@1.2 or C:\bin\mcpactor.exe.
func isProgram(word string) bool {
	name, _, _ := strings.Cut(path.Base(strings.ReplaceAll(word, `\`, "/")), "@")
	return strings.TrimSuffix(name, ".exe") == "mcpactor"
}

func isHTTP(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")
}
