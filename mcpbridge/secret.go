package mcpbridge

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// maxWord is the length from which a part of a URL's path counts as a secret, whatever
// it consists of.
const maxWord = 20

// secretsOf returns what no error text may have of a URL: the user and password, the
// values of the query, the path as a whole, and those parts of it that are no plain
// words, since many services have a token there; each as it is written and as it reads.
func secretsOf(u *url.URL) (all []string) {
	add := func(value string) {
		if len(value) >= minSecret {
			all = append(all, value)
		}
	}
	add(u.RawQuery)
	for _, values := range u.Query() {
		for _, value := range values {
			all = addSecret(all, value)
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
		if add(password); !given { // then the user is a token
			add(user)
		}
	}
	return all
}

// isWord reports whether a part of a path looks as if a person had named it: short, in
// lower case, without digits.
func isWord(part string) bool {
	return len(part) < maxWord && !strings.ContainsFunc(part, func(r rune) bool {
		return (r < 'a' || r > 'z') && r != '-' && r != '_' && r != '.'
	})
}

// recent is the values of headers that were sent of late.
type recent struct {
	mu     sync.Mutex
	values []string // the last ones last
}

// add keeps a value, in place of the oldest when there are too many. It reports
// whether it was not there.
func (r *recent) add(value string, most int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.values, value) {
		return false
	}
	r.values = append(r.values[max(0, len(r.values)-most+1):], value)
	return true
}

// secrets appends the values.
func (r *recent) secrets(all []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, value := range r.values {
		all = addSecret(all, value)
	}
	return all
}
