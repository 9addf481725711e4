package wire

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Evidence is what a refusal shows besides its status and code. It is the Err of the refusal's
// error.
type Evidence struct {
	// Front is true if something in front of the server seems to answer in its place.
	Front bool
	// Said stands for all that the refusal says, apart from the id of the session, which may be
	// quoted. It is zero if that could not be read.
	Said [16]byte
	// Err is the error of the SDK, or nil.
	Err error
}

// Error returns the text of the error of the SDK.
func (e *Evidence) Error() string {
	if e.Err == nil {
		return "refused"
	}
	return e.Err.Error()
}

// Unwrap returns the error of the SDK.
func (e *Evidence) Unwrap() error { return e.Err }

// EvidenceOf returns the evidence of a refusal; an empty one if there is none.
func EvidenceOf(e *mcpbridge.Error) (known Evidence) {
	var is *Evidence
	if e != nil && errors.As(e.Err, &is) {
		known = *is
	}
	return known
}

// SaidOf returns [Evidence.Said] for a text in a session with this id, which may be empty.
func SaidOf(text, sessionID string) (said [16]byte) {
	if sessionID != "" {
		text = strings.ReplaceAll(text, sessionID, "{session}")
	}
	sum := sha256.Sum256([]byte(text))
	copy(said[:], sum[:])
	return said
}

// SaidOfError is SaidOf for a JSON-RPC error.
func SaidOfError(code int64, message string, data []byte, sessionID string) [16]byte {
	return SaidOf(fmt.Sprintf("%d %q %s", code, message, data), sessionID)
}
