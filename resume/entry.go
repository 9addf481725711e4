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

// entry is a record in the form in which both stores keep it: JSON, which shares
// nothing with the caller's record.
type entry struct {
	Saved  time.Time         `json:"saved"`
	Record *mcpbridge.Record `json:"record"`
}

// encode returns the entry of a record.
func encode(record *mcpbridge.Record, now time.Time) ([]byte, error) {
	switch {
	case record == nil:
		return nil, errors.New("the record is nil: delete the key instead")
	case !utf8.ValidString(record.SessionID): // JSON would change it silently
		return nil, errors.New("the session id is not valid UTF-8")
	}
	return json.Marshal(entry{now.UTC(), record})
}

// decode returns the record of an entry. It drops the errors of the decoder, because
// they quote the text.
func decode(value []byte) (*mcpbridge.Record, error) {
	var e entry
	if json.Unmarshal(value, &e) != nil || e.Record == nil {
		return nil, ErrGarbage
	}
	return e.Record, nil
}

// olderThan reports whether an entry was saved before a time. An entry that cannot be
// read has no time, and is not older.
func olderThan(limit time.Time, value []byte) bool {
	var e struct {
		Saved time.Time `json:"saved"`
	}
	return json.Unmarshal(value, &e) == nil && !e.Saved.IsZero() && e.Saved.Before(limit)
}

// keyBytes encodes a key. The length of the server's name comes first, so that no two
// keys have the same encoding.
func keyBytes(key messages.Key) []byte {
	key = key.Normal()
	b := binary.AppendUvarint(nil, uint64(len(key.Server)))
	b = append(b, key.Server...)
	return append(b, key.Scope...)
}

// keyOf decodes what keyBytes has encoded.
func keyOf(b []byte) (key messages.Key, ok bool) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return key, false
	}
	rest := b[n:]
	return messages.Key{Server: string(rest[:length]), Scope: string(rest[length:])}, true
}
