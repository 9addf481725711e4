package bridge

import (
	"bytes"
	"io"
	"sync/atomic"
)

// input is the writing end of a pipe to a server: stdin of a process, or the pipe to a
// server in memory. It knows how far messages got: one whose closing brace has not gone
// out was not received. Without its newline it may have been, because a reader that
// decodes a stream of JSON values does not wait for that.
//
// One message is written at a time. The counts may be read from any goroutine.
type input struct {
	io.Writer
	written atomic.Int64 // bytes; too many while a write is under way
	end     atomic.Int64 // of the last message, without its newline, whether it was reached or not
}

// Write writes one message.
func (in *input) Write(msg []byte) (int, error) {
	// Counted before, for else bytes of it that are unread in the pipe would be
	// taken for those of an earlier message, which was read and may have run.
	start := in.written.Add(int64(len(msg))) - int64(len(msg))
	in.end.Store(start + int64(len(bytes.TrimRight(msg, "\r\n"))))
	n, err := in.Writer.Write(msg)
	in.written.Add(int64(n - len(msg)))
	return n, err
}

// passed reports whether a message that was begun after the given offset went out up
// to its closing brace. Without an input, which only pipes have, none did.
func (in *input) passed(offset int64) bool {
	if in == nil {
		return false
	}
	end := in.end.Load()
	return end > offset && in.written.Load() >= end
}

// offset returns how many bytes went out.
func (in *input) offset() int64 {
	if in == nil {
		return 0
	}
	return in.written.Load()
}
