package config

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// scopeVariable is the variable that stands for the scope of each key. It is replaced when a
// session is opened, and not when the file is read: until then [scopeMark] takes its place.
const scopeVariable = "scope"

// scopeMark stands for the scope in a text. It is random, so that no file and no environment
// variable contains it.
var scopeMark = "\x00scope:" + rand.Text() + "\x00"

// scopeFields are the fields of a server in which the scope may be.
var scopeFields = []string{"command", "args", "env", "environment", "cwd", "url", "serverUrl", "httpUrl", "headers", "setup"}

// scope returns the mark for ${scope} in a value, or adds an error where it is not supported.
func (r *reader) scope(n *node) string {
	switch field := r.fieldOf(n); {
	case field == nil || !slices.Contains(scopeFields, field.name):
		r.fail(n, "cannot depend on the scope: ${scope} is for args, env, cwd, url, headers and the arguments of setup; write ${env:scope} for an environment variable")
	case field.name == "command" && isProgram(field, n):
		r.fail(n, "the program cannot depend on the scope: use ${scope} in its arguments")
	case field.name == "setup" && !isBelow(n, "arguments"):
		r.fail(n, "the tool cannot depend on the scope: use ${scope} in its arguments")
	default:
		return scopeMark
	}
	return ""
}

// fieldOf returns the field of the server that a value is in, or nil.
func (r *reader) fieldOf(n *node) *node {
	for ; n.parent != nil; n = n.parent {
		if n.parent == r.current {
			return n
		}
	}
	return nil
}

// isProgram reports whether a value in the field command is the name of the program.
func isProgram(field, n *node) bool {
	return n == field || field.kind == isList && n.index == 0 || field.kind == isObject && !isBelow(n, "args") && !isBelow(n, "env")
}

// isBelow reports whether a value is in an object or list of a name.
func isBelow(n *node, name string) bool {
	for ; n != nil; n = n.parent {
		if n.name == name {
			return true
		}
	}
	return false
}

// perKey makes a server whose texts have the mark of the scope depend on the key. Its own
// texts then have the default scope.
func (r *reader) perKey(n *node, e *entry) {
	t := template{server: e.server}
	if !t.depends() {
		return
	}
	if i, err := t.checkArguments(); err != nil {
		r.fail(argumentOf(n, i), "%w", err)
		return
	}
	resolved, err := t.replace(messages.DefaultScope)
	if err != nil {
		at := n
		var wrong *fieldError
		if errors.As(err, &wrong) {
			at, err = placeOf(n, wrong.field), wrong.err
		}
		r.fail(at, "%w", err)
		return
	}
	e.server = resolved
	e.server.PerKey, e.server.PerKeyID = t.forKey, t.id()
}

// placeOf returns the first of the fields of a server that a field of [mcpbridge.Server] is
// read from.
func placeOf(n *node, field string) *node {
	name := strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' })[0]
	for _, name := range append(map[string][]string{"url": {"httpUrl", "serverUrl"}, "env": {"environment"}}[name], name) {
		if found := n.field(name); found != nil {
			return found
		}
	}
	return n
}

// argumentOf returns the argument of a server's command with an index.
func argumentOf(n *node, i int) *node {
	command := n.field("command")
	list := n.field("args")
	switch command.kind {
	case isList: // the first one is the program
		list, i = command, i+1
	case isObject:
		list = command.field("args")
	}
	if list == nil || list.kind != isList || i >= len(list.items) {
		return command
	}
	return list.items[i]
}

// template is a server with the mark of the scope in some of its texts.
type template struct{ server mcpbridge.Server }

// fieldError is an error about one field of a server.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string { return e.field + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// depends reports whether the server depends on the scope.
func (t template) depends() bool {
	s := t.server
	texts := slices.Concat([]string{s.Dir, s.URL}, s.Args, slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(s.Headers)))
	for _, call := range s.Setup {
		texts = append(texts, textsIn(call.Arguments)...)
	}
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, scopeMark) })
}

// id returns what is the same for two templates if and only if they have the same texts,
// without revealing them.
func (t template) id() string {
	s := t.server
	data, _ := json.Marshal([]any{s.Args, s.Env, s.Dir, s.URL, s.Headers, s.Setup}) // all of it was read from a file
	sum := sha256.Sum256([]byte(strings.ReplaceAll(string(data), scopeInJSON, "scope\x00")))
	return "file:" + hex.EncodeToString(sum[:16])
}

// scopeInJSON is the mark as encoding/json writes it.
var scopeInJSON = strings.ReplaceAll(scopeMark, "\x00", `\u0000`)

// forKey is the function PerKey of the server.
func (t template) forKey(_ context.Context, key messages.Key) (mcpbridge.Server, error) {
	s, err := t.replace(key.Scope)
	if err == nil && s.Dir != t.server.Dir {
		err = t.makeDir(s.Dir)
	}
	if err != nil {
		return mcpbridge.Server{}, &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "the configuration of the key: " + err.Error(), Err: err}
	}
	return s, nil
}

// replace returns the server with the scope in place of the mark.
func (t template) replace(scope string) (s mcpbridge.Server, err error) {
	s = t.server
	var errs []error
	put := func(field, text string, in func(text, scope string) (string, error)) string {
		if !strings.Contains(text, scopeMark) {
			return text
		}
		text, err := in(text, scope)
		if err != nil {
			errs = append(errs, &fieldError{field, err})
		}
		return text
	}
	s.Args = slices.Clone(s.Args)
	for i, arg := range s.Args {
		s.Args[i] = put(fmt.Sprintf("args[%d]", i), arg, inArgument)
	}
	s.Env = maps.Clone(s.Env)
	for name, value := range s.Env {
		s.Env[name] = put("env."+name, value, inText)
	}
	s.Dir = put("cwd", s.Dir, inDir)
	s.URL = put("url", s.URL, inURL)
	s.Headers = maps.Clone(s.Headers)
	for name, value := range s.Headers {
		s.Headers[name] = put("headers."+name, value, inHeader)
	}
	s.Setup = slices.Clone(s.Setup)
	for i, call := range s.Setup {
		arguments := replaced(call.Arguments, func(text string) string { return put(fmt.Sprintf("setup[%d].arguments", i), text, inText) })
		s.Setup[i] = &mcp.CallToolParams{Name: call.Name, Arguments: arguments}
	}
	if len(errs) > 0 {
		slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return s, errs[0]
	}
	return s, nil
}

// replaced returns decoded JSON with its texts replaced.
func replaced(value any, replace func(string) string) any {
	switch v := value.(type) {
	case string:
		return replace(v)
	case []any:
		list := make([]any, len(v))
		for i, one := range v {
			list[i] = replaced(one, replace)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, one := range v {
			object[name] = replaced(one, replace)
		}
		return object
	}
	return value
}

// textsIn returns the texts in decoded JSON.
func textsIn(value any) (texts []string) {
	replaced(value, func(text string) string {
		texts = append(texts, text)
		return text
	})
	return texts
}

// separators are what separates the elements of a path, on any system.
const separators = `/\`

// inText puts the scope into a text, as it is. Where it stands in a path it must be one
// element, so that it does not lead out of the directory.
func inText(text, scope string) (string, error) {
	result := strings.ReplaceAll(text, scopeMark, scope)
	if !strings.ContainsAny(text, separators) {
		return result, nil
	}
	return result, checkElements(text, scope)
}

// inArgument is inText for an argument of a command, which must not become an option.
func inArgument(text, scope string) (string, error) {
	if strings.HasPrefix(text, scopeMark) && strings.HasPrefix(scope, "-") {
		return "", errors.New("the scope begins with -, so that the command would take it for an option")
	}
	return inText(text, scope)
}

// checkElements returns an error if the scope is not a part of one element of the path that it
// is in.
func checkElements(text, scope string) error {
	if strings.ContainsAny(scope, separators) {
		return errors.New("the scope has a slash, but is one element of a path here")
	}
	for element := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if element, marked := withScope(element, scope); marked && (element == "." || element == "..") {
			return errors.New("the scope leads out of its directory")
		}
	}
	return nil
}

// withScope returns a text with the scope in place of the mark, and whether it has the mark.
func withScope(text, scope string) (string, bool) {
	return strings.ReplaceAll(text, scopeMark, scope), strings.Contains(text, scopeMark)
}

// inDir puts the scope into the path of a directory.
func inDir(text, scope string) (string, error) {
	if err := checkElements(text, scope); err != nil {
		return "", err
	}
	result := strings.ReplaceAll(text, scopeMark, scope)
	for element := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		element, marked := withScope(element, scope)
		if marked && (!filepath.IsLocal(element) || strings.TrimRight(element, ". ") != element) {
			return "", errors.New("the scope is not the name of a directory")
		}
	}
	return result, nil
}

// inURL puts the scope into the path or the query of a URL.
func inURL(text, scope string) (string, error) {
	_, rest, _ := strings.Cut(text, "://")
	host := len(text) - len(rest) + len(rest[:strings.IndexAny(rest+"/", "/?#")])
	if strings.Contains(text[:host], scopeMark) || rest == "" {
		return "", errors.New("the host cannot depend on the scope: ${scope} is for the path and the query")
	}
	if _, fragment, _ := strings.Cut(text, "#"); strings.Contains(fragment, scopeMark) {
		return "", errors.New("the fragment is not sent: ${scope} is for the path and the query")
	}
	path, query, hasQuery := strings.Cut(text[host:], "?")
	for segment := range strings.SplitSeq(path, "/") {
		if !strings.Contains(segment, scopeMark) {
			continue
		}
		plain, err := url.PathUnescape(strings.ReplaceAll(segment, scopeMark, url.PathEscape(scope)))
		if err != nil {
			return "", errors.New("is malformed")
		}
		for element := range strings.FieldsFuncSeq(plain, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
			if element == "." || element == ".." {
				return "", errors.New("the scope leads out of its path")
			}
		}
	}
	result := text[:host] + strings.ReplaceAll(path, scopeMark, url.PathEscape(scope))
	if hasQuery {
		result += "?" + strings.ReplaceAll(query, scopeMark, url.QueryEscape(scope))
	}
	return result, nil
}

// inHeader puts the scope into the value of a header. Headers have no escapes that all servers
// know, so that a scope with other characters than a token could be read as something else.
func inHeader(text, scope string) (string, error) {
	if strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`,;"\`, r) }) {
		return "", errors.New("the scope has a character that does not belong into a header: white space, a quotation mark, a comma, a semicolon, a backslash, or one that is not ASCII")
	}
	return strings.ReplaceAll(text, scopeMark, scope), nil
}

// makeDir makes the directory of a key. What comes before the scope must exist.
func (t template) makeDir(dir string) error {
	before, _, _ := strings.Cut(t.server.Dir, scopeMark)
	base := filepath.Dir(before + "x")
	inside, err := filepath.Rel(base, dir)
	if err != nil {
		return &fieldError{"cwd", err}
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return &fieldError{"cwd", err}
	}
	defer root.Close() //nolint:errcheck // it was only read
	if err := root.MkdirAll(inside, 0o700); err != nil {
		return &fieldError{"cwd", err}
	}
	return nil
}
