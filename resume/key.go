package resume

import (
	"encoding/binary"

	"github.com/mcpactor/mcpactor/messages"
)

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
