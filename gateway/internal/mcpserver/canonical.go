package mcpserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
)

// Canonical returns JSON in a form that is the same for all texts with the same value.
func Canonical(raw json.RawMessage) []byte {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // digits beyond those of a float64 count
	var value any
	if decoder.Decode(&value) != nil {
		return raw
	}
	data, err := Encode(value)
	if err != nil {
		return raw
	}
	return data
}

// Digest returns a short text that is the same for all texts of JSON with the same value.
func Digest(raw json.RawMessage) string {
	sum := sha256.Sum256(Canonical(raw))
	return string(sum[:])
}
