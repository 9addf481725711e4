package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// dollars is what is made of a name after a dollar sign, without braces.
type dollars int

const (
	refuseDollars dollars = iota // an error: no client but Gemini CLI replaces it
	keepDollars                  // kept, for a shell
	expandDollars                // an environment variable
)

// variable is all that some client replaces in strings.
var variable = regexp.MustCompile(`\$\{[^}]*\}?|\{\{\s*[A-Za-z_]\w*\s*\}\}|\{(?:env|file):[^{}]*\}|\$[A-Za-z_]\w*`)

// named is the environment variable that a string between ${ and } names, with its
// default.
var named = regexp.MustCompile(`^(?s:(env:)?([A-Za-z_]\w*)(:-(.*))?)$`)

// expand replaces the variables in a string. What comes from a variable is not
// expanded again. What cannot be replaced is an error: it would be sent as it stands,
// often in the place of a credential.
func (r *reader) expand(n *node, text string, dollars dollars) string {
	return variable.ReplaceAllStringFunc(text, func(match string) string {
		switch {
		case strings.HasPrefix(match, "${"):
			body, closed := strings.CutSuffix(match[2:], "}")
			if !closed {
				r.fail(n, "has a ${ without a }")
				return ""
			}
			return r.braced(n, body)
		case strings.HasPrefix(match, "{{"):
			name := strings.TrimSpace(strings.Trim(match, "{}"))
			if value, ok := r.asked(name); ok {
				return value
			}
			r.fail(n, "{{%s}} is replaced for each user by the client that it is from: answer it in Loader.Variable, or remove it and give each key its credentials", name)
		case match[0] == '{':
			form, name, _ := strings.Cut(match[1:len(match)-1], ":")
			switch {
			case !r.opencode:
				r.fail(n, "{%s:…} is replaced in files of opencode only: write ${VAR} for an environment variable", form)
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
			r.fail(n, "%s is not replaced: write ${%s}, and a text that has a dollar sign into an environment variable", match, match[1:])
		}
		return ""
	})
}

// braced returns what stands for ${body}.
func (r *reader) braced(n *node, body string) string {
	parts := named.FindStringSubmatch(body)
	if parts == nil || parts[2] == body { // else it can only be of the environment
		if value, ok := r.asked(body); ok {
			return value
		}
	}
	switch {
	case strings.HasPrefix(body, "input:"):
		r.fail(n, "needs the input %q, for which the client that it is from asks: answer it in Loader.Variable, or write ${VAR} for an environment variable", body[len("input:"):])
	case strings.HasPrefix(body, "file:"):
		return r.contents(n, body[len("file:"):])
	case strings.HasPrefix(body, "workspaceFolder"):
		r.fail(n, "the workspace folder is not known: answer %q in Loader.Variable, or write the path", body)
	case parts == nil || strings.Contains(parts[4], "${"):
		r.fail(n, "has a ${…} that is not known: there are ${VAR}, ${VAR:-default}, ${env:VAR}, ${input:id}, ${file:path}, ${workspaceFolder} and ${userHome}")
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

// environment returns an environment variable.
func (r *reader) environment(n *node, name string) string {
	value, ok := r.loader.LookupEnv(name)
	if !ok {
		r.fail(n, "the environment variable %s is not set: set it, or write ${%s:-default}", printable(name), printable(name))
	}
	return value
}

// asked returns a variable that is not one of the environment.
func (r *reader) asked(name string) (value string, ok bool) {
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

// contents returns the text of a file that a string names.
func (r *reader) contents(n *node, path string) string {
	data, err := os.ReadFile(r.located(path))
	if err != nil {
		r.fail(n, "%w", err)
	}
	return strings.TrimSpace(string(data))
}

// located returns the path of a file that is named in our file.
func (r *reader) located(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(r.dir, path)
}

// line is one of an environment file: a name, and a value that may be quoted.
var line = regexp.MustCompile(`^(?:export\s+)?([A-Za-z_][\w.]*)\s*=\s*(?:"((?:[^"\\]|\\[n"\\])*)"|'([^']*)'|([^"'\s#][^#]*|))\s*(?:\s#.*)?$`)

// envFile reads an environment file: lines such as NAME=value. A line that could be
// meant in another way is an error.
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
		parts := line.FindStringSubmatch(text)
		if parts == nil {
			r.fail(n, "line %d of the file is not understood: write NAME=value, with quotes around a value with spaces or #", i+1)
			continue
		}
		escaped := strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\\`, `\`).Replace(parts[2])
		env[parts[1]] = escaped + parts[3] + strings.TrimSpace(parts[4])
	}
	return env
}
