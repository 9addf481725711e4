package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// ListStore is a [mcpbridge.Store] that keeps what servers list, and no sessions: those end with their clients. Each list is a
// file in the folder, which processes may share.
type ListStore struct{ Folder string }

// file returns the file of a key.
func (s *ListStore) file(key messages.Key) string {
	return filepath.Join(s.Folder, fmt.Sprintf("%x.json", sha256.Sum256([]byte(key.Server+"\x00"+key.Scope))))
}

// Load returns the list of a key, or nil.
func (s *ListStore) Load(_ context.Context, key messages.Key) (*mcpbridge.Record, error) {
	if !mcpbridge.IsListKey(key) {
		return nil, nil
	}
	data, err := os.ReadFile(s.file(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &mcpbridge.Record{List: data}, nil
}

// Save writes the list of a key. Readers see the whole list before or after.
func (s *ListStore) Save(_ context.Context, key messages.Key, record *mcpbridge.Record) error {
	if !mcpbridge.IsListKey(key) || !json.Valid(record.List) {
		return nil
	}
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(s.Folder, "new-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(record.List)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), s.file(key))
	}
	if err != nil {
		os.Remove(temporary.Name()) //nolint:errcheck // the error is that of the list
	}
	return err
}

// Delete removes the list of a key.
func (s *ListStore) Delete(_ context.Context, key messages.Key) error {
	if err := os.Remove(s.file(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Keys returns nothing: there are no sessions to resume.
func (*ListStore) Keys(context.Context) ([]messages.Key, error) { return nil, nil }
