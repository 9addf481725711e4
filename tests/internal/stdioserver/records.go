package stdioserver

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// note records a call and its scope, and reports whether the call has run before. For
// the scope it locks a file. The system releases the lock when the process ends,
// however it ends.
func (s *stdio) note(in arguments) (again bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Call != "" {
		runs, err := (&Process{dir: s.dir}).read("runs")
		if err != nil {
			return false, err
		}
		again = slices.Contains(runs, in.Call)
		if err := s.append("runs", in.Call); err != nil {
			return false, err
		}
	}
	if in.Scope == "" || s.locks[in.Scope] != nil {
		return again, nil
	}
	lock, err := os.OpenFile(filepath.Join(s.dir, "scope-"+url.PathEscape(in.Scope)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return again, err
	}
	s.locks[in.Scope] = lock
	if isLocked(lock) {
		return again, s.append("overlaps", in.Scope)
	}
	return again, nil
}

// append appends one word to a file. Other processes append to the same file.
func (s *stdio) append(name, word string) error {
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, url.PathEscape(word))
	return err
}

// arguments are the arguments of all tools.
type arguments struct {
	Call    string `json:"call,omitempty"`
	Scope   string `json:"scope,omitempty"`
	Size    int    `json:"size,omitempty"`
	Refusal string `json:"refusal,omitempty"`
}

// argsOf returns the arguments that all tools share.
func argsOf(call *mcp.CallToolRequest) (in arguments) {
	json.Unmarshal(call.Params.Arguments, &in) //nolint:errcheck // the tool reports the error
	return in
}
