// Package entry has what all stores of records share: the encoding of records and of keys, and
// errors.
//
// The store on Redis is in a module of its own, which may be older than this one. For this
// reason what is exported here keeps its meaning: change a name when the meaning changes.
package entry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Forever is the age limit that keeps all records.
const Forever time.Duration = -1

// DefaultMaxAge is how long a record is kept after it was last saved: 30 days.
const DefaultMaxAge = 30 * 24 * time.Hour

// The errors of several stores. Package resume exports them.
var (
	ErrClosed  = errors.New("the store is closed")
	ErrGarbage = errors.New("the record cannot be read: delete it, or save another one")
)

// entry is a record in the form in which all stores keep it: JSON, which shares nothing
// with the caller's record. A later version may add fields, which this one ignores. A form
// that this version cannot read needs another place: the bucket of a file, the default
// prefix of a shared store.
type entry struct {
	Saved  time.Time         `json:"saved"`
	Record *mcpbridge.Record `json:"record"`
}

// Encode returns the entry of a record.
func Encode(record *mcpbridge.Record, now time.Time) ([]byte, error) {
	switch {
	case record == nil:
		return nil, errors.New("the record is nil: delete the key instead")
	case !utf8.ValidString(record.SessionID): // JSON would change it silently
		return nil, errors.New("the session id is not valid UTF-8")
	}
	return json.Marshal(entry{now.UTC(), record})
}

// EncodeSwap returns the entry of a record that replaces one of the version from. It is nil for nil, which deletes the record.
func EncodeSwap(record *mcpbridge.Record, from uint64, now time.Time) ([]byte, error) {
	if record == nil {
		return nil, nil
	}
	if record.Version != from+1 {
		return nil, fmt.Errorf("the record has the version %d: set it to %d, one more than that of the record it replaces", record.Version, from+1)
	}
	return Encode(record, now)
}

// HasVersion reports whether an entry, if there is one, is of a version. No entry is of version 0.
func HasVersion(value []byte, exists bool, version uint64) (bool, error) {
	if !exists {
		return version == 0, nil
	}
	record, err := Decode(value)
	return err == nil && record.Version == version, err
}

// Decode returns the record of an entry. It drops the errors of the decoder, because
// they quote the text.
func Decode(value []byte) (*mcpbridge.Record, error) {
	var e entry
	if json.Unmarshal(value, &e) != nil || e.Record == nil {
		return nil, ErrGarbage
	}
	return e.Record, nil
}

// OlderThan reports whether an entry was saved before a time. An entry that cannot be
// read has no time, and is not older.
func OlderThan(limit time.Time, value []byte) bool {
	var e struct {
		Saved time.Time `json:"saved"`
	}
	return json.Unmarshal(value, &e) == nil && !e.Saved.IsZero() && e.Saved.Before(limit)
}

// Name returns a key as text, server/scope, for a store that many programs can see. Bytes
// that are not plain are escaped as in a URL, so that no two keys have the same name, and
// the names of a server's keys have a prefix in common.
func Name(key messages.Key) string {
	key = key.Normal()
	return url.PathEscape(key.Server) + "/" + url.PathEscape(key.Scope)
}

// KeyOf returns the key of a name. It accepts only what Name returns.
func KeyOf(name string) (key messages.Key, ok bool) {
	server, scope, _ := strings.Cut(name, "/")
	key.Server, _ = url.PathUnescape(server)
	key.Scope, _ = url.PathUnescape(scope)
	if Name(key) != name {
		return messages.Key{}, false
	}
	return key, true
}

// Failed adds the operation and the key to an error, and that ctx has ended if it has. It
// returns nil for nil.
func Failed(ctx context.Context, op string, key messages.Key, err error) error {
	return FailedAll(ctx, op+" "+key.String(), err)
}

// FailedAll is [Failed] for an operation that has no key.
func FailedAll(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if over := ctx.Err(); over != nil && !errors.Is(err, over) {
		err = fmt.Errorf("%w: %w", over, err)
	}
	return fmt.Errorf("resume: %s: %w", op, err)
}
