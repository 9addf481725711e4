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

// file returns the file of the client with a session id. The id is a secret, and cannot be told from the name.
func (s *ClientStore) file(id string) string {
	return filepath.Join(s.Folder, fmt.Sprintf("%x.json", sha256.Sum256([]byte(id))))
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

// touch notes that the client with a session id has been there.
func (s *ClientStore) touch(id string) {
	now := time.Now()
	os.Chtimes(s.file(id), now, now) //nolint:errcheck // it is forgotten earlier then
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
			os.Chtimes(file, now, now) //nolint:errcheck // it is forgotten earlier then
			continue
		}
		all = append(all, away{file, scope, info.ModTime()})
	}
	slices.SortFunc(all, func(a, b away) int { return cmp.Or(b.since.Compare(a.since), cmp.Compare(a.file, b.file)) })
	for i, a := range all {
		if i < maxClients && now.Sub(a.since) <= maxAway {
			known[a.scope] = true
		} else if gone := os.Remove(a.file); gone != nil {
			err = errors.Join(err, gone)
		}
	}
	return known, err
}
