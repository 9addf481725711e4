package wire

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
)

// Recover turns a panic, of a hook or of the SDK, into an error. Defer it.
func Recover(err *error) {
	if r := recover(); r != nil {
		*err = mcpbridge.AsError(guard.New(r))
	}
}

// Unauthorized returns the error for credentials that cannot be had. The error for a panic is
// internal.
func Unauthorized(text string, err error, secrets []string) *mcpbridge.Error {
	var panicked *guard.Panic
	if errors.As(err, &panicked) {
		return &mcpbridge.Error{Class: mcpbridge.Internal, Detail: text + redact.Clean(panicked.Brief(), secrets...), Err: panicked}
	}
	return &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: text + redact.Describe(err, secrets...), Err: err}
}

// IsEndOfStream reports whether a connection that ended with err ended between two messages, as
// opposed to a message that could not be read.
func IsEndOfStream(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrClosed)
}
