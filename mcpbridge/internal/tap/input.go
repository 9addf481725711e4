package tap

import (
	"bytes"
	"io"
	"sync/atomic"
)

// Input is the writing end of a pipe to a server: the stdin of a process, or the pipe to a
// server in memory. It counts what was written. A message whose closing brace was not written
// was not received. A message without its newline may have been received: a reader that
// decodes a stream of JSON values does not wait for the newline.
//
// One message is written at a time. The counts may be read from any goroutine.
type Input struct {
	io.Writer
	written atomic.Int64 // bytes, including those of a write that is under way
	end     atomic.Int64 // the offset at which the last message ends, without its newline, whether written or not
}

// Write writes one message.
func (in *Input) Write(msg []byte) (int, error) {
	// The message is counted before it is written. Otherwise its unread bytes in the pipe would count as bytes of an
	// earlier message, which was read and may have run.
	start := in.written.Add(int64(len(msg))) - int64(len(msg))
	in.end.Store(start + int64(len(bytes.TrimRight(msg, "\r\n"))))
	n, err := in.Writer.Write(msg)
	in.written.Add(int64(n - len(msg)))
	return n, err
}

// Close does nothing: the owner of the pipe closes it, and not the SDK.
func (*Input) Close() error { return nil }

// Written returns how many bytes were written.
func (in *Input) Written() int64 { return in.written.Load() }

// passed reports whether a message that began at the given offset was written up to its
// closing brace. Without an input that is not known, and passed returns true.
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
