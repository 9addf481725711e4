package resume

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// entry is a record as both stores keep it, in JSON: a copy that shares nothing
// with what was given.
type entry struct {
	Saved  time.Time         `json:"saved"`
	Record *mcpbridge.Record `json:"record"`
}

// encode returns the entry of a record.
func encode(record *mcpbridge.Record, now time.Time) ([]byte, error) {
	switch {
	case record == nil:
		return nil, errors.New("the record is nil: delete the key instead")
	case !utf8.ValidString(record.SessionID): // JSON would change it in silence
		return nil, errors.New("the session id is not valid UTF-8")
	}
	return json.Marshal(entry{now.UTC(), record})
}

// decode returns the record of an entry. The errors of the decoder quote what
// they read, so they are dropped.
func decode(value []byte) (*mcpbridge.Record, error) {
	var e entry
	if json.Unmarshal(value, &e) != nil || e.Record == nil {
		return nil, ErrGarbage
	}
	return e.Record, nil
}

// olderThan tells whether an entry was saved before a time. Garbage was not: it
// has no time.
func olderThan(limit time.Time, value []byte) bool {
	var e struct {
		Saved time.Time `json:"saved"`
	}
	return json.Unmarshal(value, &e) == nil && !e.Saved.IsZero() && e.Saved.Before(limit)
}

// keyBytes encodes a key. The length of the server's name comes first, so that
// no two keys are alike, whatever is in their names.
func keyBytes(key messages.Key) []byte {
	key = key.Normal()
	b := binary.AppendUvarint(nil, uint64(len(key.Server)))
	b = append(b, key.Server...)
	return append(b, key.Scope...)
}

// keyOf returns the key that keyBytes has made bytes of.
func keyOf(b []byte) (key messages.Key, ok bool) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return key, false
	}
	rest := b[n:]
	return messages.Key{Server: string(rest[:length]), Scope: string(rest[length:])}, true
}
