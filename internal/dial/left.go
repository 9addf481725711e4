package dial

import (
	"errors"
	"fmt"
)

var (
	// ErrOpening is in the error of closing what [LeftBy] returns if the server may open a session, but has not answered
	// initialize.
	ErrOpening = errors.New("the server has not answered initialize")
	// ErrUnanswered is an [ErrOpening] that stays: the answer is no longer awaited. To close again is futile.
	ErrUnanswered = fmt.Errorf("%w in time, and may have opened a session", ErrOpening)
)

// LeftOpen is the underlying error of a dial that was cancelled while the server may still open a session, or that has opened
// one that could not be ended.
type LeftOpen struct {
	Conn Conn
	Err  error // the underlying error of the dial, or nil
}

// Error returns the text of the underlying error.
func (l *LeftOpen) Error() string {
	if l.Err == nil {
		return "the server may still have the session"
	}
	return l.Err.Error()
}

// Unwrap returns the underlying error.
func (l *LeftOpen) Unwrap() error { return l.Err }

// LeftBy returns the connection that the dial that failed with err has left open, or nil. Only its Close may be called, which
// ends the session: call it again if it fails, unless with [ErrUnanswered]. If nobody calls it, the session is ended only if
// the server answers within the connect timeout.
func LeftBy(err error) Conn {
	if left, ok := errors.AsType[*LeftOpen](err); ok {
		return left.Conn
	}
	return nil
}
