package tap

import (
	"bytes"
	"io"
	"sync/atomic"
)

// Input is the writing end of a pipe to a server: the stdin of a process, or the pipe to a
// server in memory. It knows how far messages got. A message whose closing brace has not gone
// out was not received. A message without its newline may have been: a reader that
// decodes a stream of JSON values does not wait for the newline.
//
// One message is written at a time. The counts may be read from any goroutine.
type Input struct {
	io.Writer
	written atomic.Int64 // bytes; too many while a write is under way
	end     atomic.Int64 // the end of the last message without its newline, reached or not
}

// Write writes one message.
func (in *Input) Write(msg []byte) (int, error) {
	// The message is counted before it is written. Otherwise those of its bytes that are unread
	// in the pipe would be taken for bytes of an earlier message, which was read and may have
	// run.
	start := in.written.Add(int64(len(msg))) - int64(len(msg))
	in.end.Store(start + int64(len(bytes.TrimRight(msg, "\r\n"))))
	n, err := in.Writer.Write(msg)
	in.written.Add(int64(n - len(msg)))
	return n, err
}

// Close does nothing. It keeps the SDK from closing a pipe that its owner closes in an
// order of its own.
func (*Input) Close() error { return nil }

// Written returns how many bytes went out.
func (in *Input) Written() int64 { return in.written.Load() }

// passed reports whether a message that began after the given offset went out up to its
// closing brace. Without an input that is not known, and the answer is yes.
func (in *Input) passed(offset int64) bool {
	if in == nil {
		return true
	}
	end := in.end.Load()
	return end > offset && in.written.Load() >= end
}

// offset is [Input.Written], or 0 without an input.
func (in *Input) offset() int64 {
	if in == nil {
		return 0
	}
	return in.written.Load()
}
