package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// dollarMode is how to treat $NAME, without braces.
type dollarMode int

const (
	rejectDollars dollarMode = iota // as an error: only Gemini CLI replaces $NAME
	keepDollars                     // as text, for a shell
	expandDollars                   // as an environment variable
)

// variable matches every form of a variable that some client replaces. No library replaces
// them all: [os.Expand] cannot tell ${NAME} from $NAME, and others replace a variable that
// is not set by nothing, and $$ by $.
var variable = regexp.MustCompile(`\$\{[^}]*\}?|\{\{\s*[A-Za-z_]\w*\s*\}\}|\{(?:env|file):[^{}]*\}|\$[A-Za-z_]\w*`)

// environmentForm matches the text between ${ and } if it is the name of an environment
// variable, with an optional default.
var environmentForm = regexp.MustCompile(`^(?s:(env:)?([A-Za-z_]\w*)(:-(.*))?)$`)

// expand replaces the variables in a string. It does not expand the value of a variable
// again. A variable that cannot be replaced is an error: otherwise its name would be sent to
// the server, often in place of a credential.
func (r *reader) expand(n *node, text string, dollars dollarMode) string {
	return variable.ReplaceAllStringFunc(text, func(match string) string {
		switch {
		case strings.HasPrefix(match, "${"):
			body, closed := strings.CutSuffix(match[2:], "}")
			if !closed {
				r.fail(n, "has a ${ without a closing }")
				return ""
			}
			return r.braced(n, body)
		case strings.HasPrefix(match, "{{"):
			name := strings.TrimSpace(strings.Trim(match, "{}"))
			if value, ok := r.special(name); ok {
				return value
			}
			r.fail(n, "{{%s}} is a value of each user, which only the original client knows: supply it in Loader.Variable, or remove it and give each key its credentials", name)
		case match[0] == '{':
			form, name, _ := strings.Cut(match[1:len(match)-1], ":")
			switch {
			case !r.opencode:
				r.fail(n, "{%s:…} is supported only in files of opencode: write ${VAR} for an environment variable", form)
			case form == "file":
				return r.contents(n, name)
			default:
				return r.environment(n, strings.TrimSpace(name))
			}
		case dollars == keepDollars:
			return match
		case dollars == expandDollars:
			return r.environment(n, match[1:])
		default:
			r.fail(n, "%s is not supported: write ${%s}, or put a text with a dollar sign into an environment variable", match, match[1:])
		}
		return ""
	})
}

// braced returns the value of ${body}.
func (r *reader) braced(n *node, body string) string {
	if body == scopeVariable {
		return r.scope(n)
	}
	parts := environmentForm.FindStringSubmatch(body)
	if parts == nil || parts[2] == body { // otherwise body is certainly an environment variable
		if value, ok := r.special(body); ok {
			return value
		}
	}
	switch {
	case strings.HasPrefix(body, "input:"):
		return r.input(n, body[len("input:"):])
	case strings.HasPrefix(body, "file:"):
		return r.contents(n, body[len("file:"):])
	case strings.HasPrefix(body, "workspaceFolder"):
		r.fail(n, "the workspace folder is unknown: supply %q in Loader.Variable, or write the path", body)
	case parts != nil && parts[1] == "" && parts[2] == scopeVariable:
		r.fail(n, "the scope has no default, because it is never empty: write ${scope}, or ${env:scope:-default} for an environment variable")
	case parts == nil || strings.Contains(parts[4], "${"):
		r.fail(n, "has an unknown form of ${…}: the known forms are ${VAR}, ${VAR:-default}, ${env:VAR}, ${input:id}, ${file:path}, ${scope}, ${workspaceFolder} and ${userHome}")
	case parts[3] != "":
		if value, _ := r.loader.LookupEnv(parts[2]); value != "" {
			return value
		}
		return parts[4]
	default:
		return r.environment(n, parts[2])
	}
	return ""
}

// environment returns the value of an environment variable.
func (r *reader) environment(n *node, name string) string {
	value, ok := r.loader.LookupEnv(name)
	if !ok && name == scopeVariable {
		r.fail(n, "the environment variable scope is not set: set it, or write ${env:scope:-default}")
	} else if !ok {
		r.fail(n, "the environment variable %s is not set: set it, or write ${%s:-default}", printable(name), printable(name))
	}
	return value
}

// special returns the value of a variable that is not an environment variable.
func (r *reader) special(name string) (value string, ok bool) {
	if r.loader.Variable != nil {
		if value, ok := r.loader.Variable(name); ok {
			return value, true
		}
	}
	switch name {
	case "userHome":
		home, err := os.UserHomeDir()
		return home, err == nil
	case "pathSeparator", "/":
		return string(filepath.Separator), true
	case "workspaceFolder":
		return r.workspace, r.workspace != ""
	case "workspaceFolderBasename":
		return filepath.Base(r.workspace), r.workspace != ""
	}
	return "", false
}

// contents returns the content of a file.
func (r *reader) contents(n *node, path string) string {
	data, err := os.ReadFile(r.located(path))
	if err != nil {
		r.fail(n, "%w", err)
	}
	return strings.TrimSpace(string(data))
}

// located resolves the path of a file that the configuration names.
func (r *reader) located(path string) string {
	path = inHome(path)
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(r.dir, path)
}

// inHome returns a path with the home directory of the user in place of a ~ at its beginning.
func inHome(path string) string {
	rest, is := strings.CutPrefix(path, "~")
	home, err := os.UserHomeDir()
	if !is || rest != "" && !os.IsPathSeparator(rest[0]) || err != nil {
		return path
	}
	return home + rest
}

// envLine matches a line of an environment file: a name, and a value that may be quoted.
var envLine = regexp.MustCompile(`^(?:export\s+)?([A-Za-z_][\w.]*)\s*=\s*(?:"((?:[^"\\]|\\[n"\\])*)"|'([^']*)'|([^"'\s#][^#]*|))\s*(?:\s#.*)?$`)

// envFile reads an environment file, with lines such as NAME=value. An ambiguous line is an
// error.
func (r *reader) envFile(n *node, path string) map[string]string {
	data, err := os.ReadFile(r.located(path))
	if err != nil {
		r.fail(n, "%w", err)
		return nil
	}
	env := map[string]string{}
	for i, text := range strings.Split(string(data), "\n") {
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			continue
		}
		parts := envLine.FindStringSubmatch(text)
		if parts == nil {
			r.fail(n, "line %d of the file is invalid: write NAME=value, and quote a value that has spaces or #", i+1)
			continue
		}
		escaped := strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\\`, `\`).Replace(parts[2])
		env[parts[1]] = escaped + parts[3] + strings.TrimSpace(parts[4])
	}
	return env
}
