package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/internal/listfile"
)

const (
	// maxAway is the time after which a client that is away is forgotten.
	maxAway = 30 * 24 * time.Hour
	// maxClients bounds the clients that are kept. Those that have been away for the longest time are forgotten first.
	maxClients = 5000
	// maxRecord bounds what is kept of a client, in bytes.
	maxRecord = 1 << 20
	// maxView bounds what is kept of the tools that a client was shown, in bytes.
	maxView = 16 << 20
)

// ClientStore is a folder with a file for each client. One process may use it at a time. It is no [resume.File], which keeps their
// sessions: the time of a client's file says when the client was last there, without another write, and a damaged file costs
// that client alone.
type ClientStore struct{ Folder string }

// record is what is known of a client apart from its connection. With it, the client can return on another connection, also
// to another process.
type record struct {
	Scope    string            `json:"scope"`              // random: no other client ever has it
	Said     json.RawMessage   `json:"said"`               // the parameters of initialize
	LogLevel string            `json:"logLevel,omitempty"` // that the client has set
	Watched  map[string]string `json:"watched,omitempty"`  // the servers of the resources that it has subscribed to, by URI
	State    map[string]uint64 `json:"state,omitempty"`    // the generations of the sessions that may have state of it, by server
	Owed     map[string]bool   `json:"owed,omitempty"`     // by server, if it must be told that state is gone: whether a log message has said so
}

// base returns the name, without a suffix, of the files of the client with a session id. The id is a secret, and cannot be told from the name.
func (s *ClientStore) base(id string) string {
	return filepath.Join(s.Folder, fmt.Sprintf("%x", sha256.Sum256([]byte(id))))
}

// file returns the file with the record of the client with a session id.
func (s *ClientStore) file(id string) string { return s.base(id) + recordSuffix }

// A client has a file with its record, and perhaps one with what it was shown.
const recordSuffix, viewSuffix = ".json", ".tools"

// viewFile returns the file with what the client with a session id was shown. It stands beside the record, which is written more often.
func (s *ClientStore) viewFile(id string) string { return s.base(id) + viewSuffix }

// saveView keeps what the client with a session id is shown.
func (s *ClientStore) saveView(id string, data []byte) error {
	if len(data) > maxView {
		return fmt.Errorf("it was shown more than the %d MiB that are kept", maxView>>20)
	}
	return listfile.Write(s.viewFile(id), data)
}

// remove forgets the client with a session id.
func (s *ClientStore) remove(id string) error {
	return errors.Join(listfile.Remove(s.file(id)), listfile.Remove(s.viewFile(id)))
}

// find returns the client with a session id, or nil.
func (s *ClientStore) find(id string) (*record, error) { return readRecord(s.file(id)) }

// errNoRecord is the error for a file that is no record.
var errNoRecord = errors.New("it is no record of a client")

// readRecord returns the client in a file, or nil if there is no such file.
func readRecord(file string) (*record, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := new(record)
	if json.Unmarshal(data, r) != nil || r.Scope == "" {
		return nil, fmt.Errorf("%s: %w", file, errNoRecord)
	}
	return r, nil
}

// save keeps what is known of the client with a session id.
func (s *ClientStore) save(id string, data []byte) error {
	if len(data) > maxRecord {
		return fmt.Errorf("it has said more than the %d KiB that are kept", maxRecord>>10)
	}
	return listfile.Write(s.file(id), data)
}

// lastAsked returns when the stateless client with a session id has sent a request, as far as that is known.
func (s *ClientStore) lastAsked(id string) time.Time {
	info, err := os.Stat(s.viewFile(id))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// touch notes that the client with a session id has been there.
func (s *ClientStore) touch(id string) { touch(s.file(id), time.Now()) }

// touchView notes that the stateless client with a session id has sent a request.
func (s *ClientStore) touchView(id string) { touch(s.viewFile(id), time.Now()) }

// touch sets the time of a file, if there is one.
func touch(file string, now time.Time) {
	os.Chtimes(file, now, now) //nolint:errcheck // it is forgotten earlier then
}

// sweep removes the records of clients that have been away for longer than maxAway, or are beyond the newest maxClients. It returns
// the scopes of all remaining clients. here are the scopes of those that are not away.
func (s *ClientStore) sweep(here map[string]bool, now time.Time) (known map[string]bool, err error) {
	type away struct {
		file, scope string
		since       time.Time
	}
	var all []away
	known = here
	files, err := filepath.Glob(filepath.Join(s.Folder, "*"))
	for _, file := range files {
		if its, isView := strings.CutSuffix(file, viewSuffix); isView {
			if _, err := os.Stat(its + recordSuffix); errors.Is(err, fs.ErrNotExist) {
				os.Remove(file) //nolint:errcheck // or else the next time
			}
			continue
		}
		info, err := os.Stat(file)
		if err != nil { // the client has just left
			continue
		}
		r, err := readRecord(file)
		if err != nil && !errors.Is(err, errNoRecord) {
			return nil, err // or else its sessions would be nobody's
		}
		scope := ""
		if r != nil {
			scope = r.Scope
		}
		if here[scope] {
			touch(file, now)
			continue
		}
		all = append(all, away{file, scope, info.ModTime()})
	}
	slices.SortFunc(all, func(a, b away) int { return cmp.Or(b.since.Compare(a.since), cmp.Compare(a.file, b.file)) })
	for i, a := range all {
		if i < maxClients && now.Sub(a.since) <= maxAway {
			known[a.scope] = true
			continue
		}
		gone := os.Remove(a.file)
		err = errors.Join(err, gone, listfile.Remove(strings.TrimSuffix(a.file, recordSuffix)+viewSuffix))
	}
	return known, err
}
