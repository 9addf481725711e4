package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// maxAway is how long a client may be away until it is forgotten.
	maxAway = 30 * 24 * time.Hour
	// maxClients bounds the clients that are kept. Those that have been away for the longest time are forgotten first.
	maxClients = 5000
	// maxRecord bounds what is kept of a client, in bytes.
	maxRecord = 1 << 20
)

// ClientStore is a folder that keeps clients, one in each file. One process may use it at a time.
type ClientStore struct{ Folder string }

// file returns the file of the client with a session id. The id is a secret, and cannot be told from the name.
func (s *ClientStore) file(id string) string {
	return filepath.Join(s.Folder, fmt.Sprintf("%x.json", sha256.Sum256([]byte(id))))
}

// find returns the client with a session id, or nil.
func (s *ClientStore) find(id string) (*record, error) { return readRecord(s.file(id)) }

// readRecord returns the client in a file, or nil if there is no such file.
func readRecord(file string) (*record, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r := new(record)
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if err == nil && r.Scope == "" {
		err = fmt.Errorf("%s: it is no record of a client", file)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// save keeps what is known of the client with a session id.
func (s *ClientStore) save(id string, data []byte) error {
	if len(data) > maxRecord {
		return fmt.Errorf("it has said more than the %d KiB that are kept", maxRecord>>10)
	}
	return writeFile(s.file(id), data)
}

// remove forgets the client with a session id.
func (s *ClientStore) remove(id string) error {
	if err := os.Remove(s.file(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sweep forgets clients that are away, if they have been so for too long, or are too many. It returns the scopes of the others.
// here are the scopes of those that are not away.
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
		scope := ""
		if r, err := readRecord(file); err == nil && r != nil {
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

// stores is the store of the supervisor: lists are kept in one, and all else in another.
type stores struct{ lists, others mcpbridge.Store }

// of returns the store for a key.
func (s *stores) of(key messages.Key) mcpbridge.Store {
	if mcpbridge.IsListKey(key) {
		return s.lists
	}
	return s.others
}

func (s *stores) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	return s.of(key).Load(ctx, key)
}

func (s *stores) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	return s.of(key).Save(ctx, key, record)
}

func (s *stores) Delete(ctx context.Context, key messages.Key) error {
	return s.of(key).Delete(ctx, key)
}

func (s *stores) Keys(ctx context.Context) ([]messages.Key, error) { return s.others.Keys(ctx) }
