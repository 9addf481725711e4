package dial

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

var (
	// ErrOpening is in the error of closing what [LeftBy] returns if the server may open a session, but has not answered
	// initialize.
	ErrOpening = errors.New("the server has not answered initialize")
	// ErrUnanswered is an [ErrOpening] that stays: the answer is no longer awaited. To close again is futile.
	ErrUnanswered = fmt.Errorf("%w in time, and may have opened a session", ErrOpening)
)

// leftOpen is the underlying error of a dial that has left a connection open.
type leftOpen struct {
	error
	conn Conn
}

// Unwrap returns the underlying error that the dial would have otherwise.
func (l *leftOpen) Unwrap() error { return l.error }

// LeaveOpen returns the error of a dial that failed with e and has left a connection open: it was cancelled while the server may
// still open a session, or it has opened one that could not be ended.
func LeaveOpen(e mcpbridge.Error, conn Conn) *mcpbridge.Error {
	e.Err = &leftOpen{cmp.Or(e.Err, errors.New("the server may still have the session")), conn}
	return &e
}

// LeftBy returns the connection that the dial that failed with err has left open, or nil. Only its Close may be called, which
// ends the session: call it again if it fails, unless with [ErrUnanswered]. If nobody calls it, the session is ended only if
// the server answers within the connect timeout.
func LeftBy(err error) Conn {
	if left, ok := errors.AsType[*leftOpen](err); ok {
		return left.conn
	}
	return nil
}
