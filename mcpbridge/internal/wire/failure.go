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

// Unauthorized returns the error for credentials that could not be obtained. After a panic, its class is
// Internal. The remedy of a [mcpbridge.Error] is kept.
func Unauthorized(text string, err error, secrets []string) *mcpbridge.Error {
	var panicked *guard.Panic
	if errors.As(err, &panicked) {
		return &mcpbridge.Error{Class: mcpbridge.Internal, Detail: text + redact.Clean(panicked.Brief(), secrets...), Err: panicked}
	}
	if known, ok := errors.AsType[*mcpbridge.Error](err); ok && known.Remedy != "" {
		return &mcpbridge.Error{
			Class: mcpbridge.Unauthorized, Detail: text + redact.Clean(known.Detail, secrets...),
			Remedy: redact.Clean(known.Remedy, secrets...), Err: err,
		}
	}
	return &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: text + redact.Describe(err, secrets...), Err: err}
}

// IsEndOfStream reports whether err is the end of a connection. Any other error is about a message that could
// not be read.
func IsEndOfStream(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrClosed)
}
