package wire

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Evidence is what a refusal shows besides its status and code. It is the Err of the refusal's
// error.
type Evidence struct {
	// Front is true if a front seems to have answered in place of the server.
	Front bool
	// Digest is a hash of the text of the refusal, without the id of the session, which the text may
	// quote. It is zero if the text could not be read.
	Digest [16]byte
	// Said is the JSON-RPC error of a server of protocol 2026-07-28, whose errors have a status of their own, or nil.
	Said *jsonrpc.Error
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

// Unwrap returns the error of the server, or else that of the SDK.
func (e *Evidence) Unwrap() error {
	if e.Said != nil {
		return e.Said
	}
	return e.Err
}

// EvidenceOf returns the evidence of a refusal, or an empty one.
func EvidenceOf(e *mcpbridge.Error) (known Evidence) {
	var is *Evidence
	if e != nil && errors.As(e.Err, &is) {
		known = *is
	}
	return known
}

// DigestOf returns [Evidence.Digest] for a text in a session with this id, which may be empty.
func DigestOf(text, sessionID string) (digest [16]byte) {
	if sessionID != "" {
		text = strings.ReplaceAll(text, sessionID, "{session}")
	}
	sum := sha256.Sum256([]byte(text))
	copy(digest[:], sum[:])
	return digest
}

// DigestOfError returns the digest of a JSON-RPC error.
func DigestOfError(code int64, message string, data []byte, sessionID string) [16]byte {
	return DigestOf(fmt.Sprintf("%d %q %s", code, message, data), sessionID)
}
