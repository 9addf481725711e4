package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// secretFlag finds the arguments of a command whose value is a secret.
var secretFlag = regexp.MustCompile(`(?i)token|secret|passw|api-?_?key|auth|credential|bearer`)

var (
	// located matches the beginning of URLs and of absolute paths.
	located = regexp.MustCompile(`^(?:[a-z][a-z0-9+.-]*://|[a-zA-Z]:[/\\]|(?:~|\.\.?)?/[a-zA-Z._-]+/)`)
	// named matches words and short numbers that are joined: hosts with a port, relative paths, media types.
	named = regexp.MustCompile(`^[/.]*[A-Z]?[a-z]{0,14}[0-9]{0,5}(?:[/:@.,;=_-]+[A-Z]?[a-z]{0,14}[0-9]{0,5})*$`)
)

// isAddress reports whether a word looks like the address or the name of something.
func isAddress(word string) bool {
	joined := strings.ContainsAny(word, "/:@.=") || len(word) < maxWord && strings.ContainsAny(word, "-_")
	return joined && (located.MatchString(word) || named.MatchString(word))
}

// textsIn returns the strings in decoded JSON.
func textsIn(value any) (texts []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			texts = append(texts, textsIn(one)...)
		}
	case map[string]any:
		for _, one := range v {
			texts = append(texts, textsIn(one)...)
		}
	}
	return texts
}

// OfServer returns the secrets of a configuration: the values of headers, of the environment,
// of the arguments of set-up calls, and of arguments of the command whose names are those of
// secrets; the words in all of them; and the secrets of the URL.
func OfServer(s *mcpbridge.Server) []string {
	var all []string
	add := func(value string) { all = Append(all, value) }
	for _, value := range s.Headers {
		add(value)
	}
	for _, value := range s.Env {
		add(value)
		if u, err := url.Parse(value); err == nil && u.User != nil { // such as the address of a database
			password, _ := u.User.Password()
			add(password)
		}
	}
	for _, call := range s.Setup {
		data, _ := json.Marshal(call.Arguments) // arguments that cannot be encoded are not sent
		var arguments any
		json.Unmarshal(data, &arguments) //nolint:errcheck // as above
		for _, text := range textsIn(arguments) {
			add(text)
		}
	}
	for i, arg := range s.Args {
		name, value, given := strings.Cut(arg, "=")
		switch {
		case given && secretFlag.MatchString(name):
			add(value)
		case i > 0 && secretFlag.MatchString(s.Args[i-1]) && strings.HasPrefix(s.Args[i-1], "-"):
			add(arg)
		}
	}
	if u, err := url.Parse(s.URL); err == nil {
		all = append(all, OfURL(u)...)
	}
	return all
}

// maxWord is the length from which any part of the path of a URL counts as a secret.
const maxWord = 20

// OfURL returns the secrets of a URL: the user and password, the values of the query, the path
// as a whole, and those parts of the path that are no plain words, because many services have a
// token there. It returns each of them both escaped and unescaped.
func OfURL(u *url.URL) (all []string) {
	add := func(value string) {
		if len(value) >= MinSecret {
			all = append(all, value)
		}
	}
	add(u.RawQuery)
	for _, values := range u.Query() {
		for _, value := range values {
			all = Append(all, value)
			add(url.QueryEscape(value))
		}
	}
	for _, path := range []string{u.Path, u.EscapedPath()} {
		add(path)
		for part := range strings.SplitSeq(path, "/") {
			if !isWord(part) {
				add(part)
			}
		}
	}
	if u.User != nil {
		user := u.User.Username()
		password, given := u.User.Password()
		add(base64.StdEncoding.EncodeToString([]byte(user + ":" + password)))
		if add(password); !given { // without a password the user is a token
			add(user)
		}
	}
	return all
}

// isWord reports whether a part of a path looks like a plain word: short, in lower case, without digits.
func isWord(part string) bool {
	return len(part) < maxWord && !strings.ContainsFunc(part, func(r rune) bool {
		return (r < 'a' || r > 'z') && r != '-' && r != '_' && r != '.'
	})
}

// isPlain reports whether a value consists of words and addresses, of which texts about something else may repeat a part.
// Other values look like tokens.
func isPlain(value string) bool {
	for word := range strings.FieldsSeq(value) {
		if !isWord(strings.ToLower(word[:1])+word[1:]) && !isAddress(word) {
			return false
		}
	}
	return true
}

// MinSecret is the length from which a configured value counts as a secret.
// Shorter values, such as "1" or "true", would garble the texts that contain them.
const MinSecret = 8

// Append appends a value and the words in it, if they are long enough to count as secrets.
func Append(all []string, value string) []string {
	for _, v := range append([]string{value}, strings.Fields(value)...) {
		if len(v) >= MinSecret {
			all = append(all, v)
		}
	}
	return all
}
