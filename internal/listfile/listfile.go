// Package listfile keeps the lists of servers in files, which processes share.
package listfile

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// errListsOnly is the error for a record that the store does not keep.
var errListsOnly = errors.New("this store keeps lists only")

// Store is a [mcpbridge.Store] of lists, and refuses everything else. Each list is a file in the folder. Processes share the
// folder, as each client over stdio has a process of its own. A [resume.File] is for one process at a time.
type Store struct{ Folder string }

// file returns the file of a key.
func (s *Store) file(key messages.Key) string {
	return filepath.Join(s.Folder, fmt.Sprintf("%x.json", sha256.Sum256([]byte(key.Server+"\x00"+key.Scope))))
}

// Load returns the list of a key, or nil.
func (s *Store) Load(_ context.Context, key messages.Key) (*mcpbridge.Record, error) {
	if !recordkey.IsList(key) {
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

// Save writes the list of a key.
func (s *Store) Save(_ context.Context, key messages.Key, record *mcpbridge.Record) error {
	if !recordkey.IsList(key) {
		return errListsOnly
	}
	if !json.Valid(record.List) {
		return errors.New("the list is not valid JSON")
	}
	return Write(s.file(key), record.List)
}

// Write writes a file that only the user can read, and its folder. Readers see the whole file before or after, also if the process is
// killed meanwhile. It is not synced: lists can be fetched again, and clients on this machine do not outlive it.
func Write(file string, data []byte) error {
	folder := filepath.Dir(file)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(folder, "new-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		os.Remove(temporary.Name()) //nolint:errcheck // the error is that of the file
	}
	return err
}

// Remove removes a file, if there is one.
func Remove(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Delete removes the list of a key.
func (s *Store) Delete(_ context.Context, key messages.Key) error {
	return Remove(s.file(key))
}

// Keys returns nothing: nobody asks for the keys of lists.
func (*Store) Keys(context.Context) ([]messages.Key, error) { return nil, nil }

// stores keeps lists in one store, and everything else in another.
type stores struct{ lists, others mcpbridge.Store }

// Beside returns a store for a supervisor that keeps lists in one store, and everything else in another. It is an [mcpbridge.Swapper]
// if the other one is.
func Beside(lists, others mcpbridge.Store) mcpbridge.Store {
	s := &stores{lists, others}
	if others, ok := others.(mcpbridge.Swapper); ok {
		return &swapper{s, others}
	}
	return s
}

// swapper is a stores whose records can be swapped, except for lists.
type swapper struct {
	*stores
	others mcpbridge.Swapper
}

func (s *swapper) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (bool, error) {
	return s.others.Swap(ctx, key, from, record)
}

// of returns the store for a key.
func (s *stores) of(key messages.Key) mcpbridge.Store {
	if recordkey.IsList(key) {
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
