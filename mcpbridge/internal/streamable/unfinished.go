package streamable

import (
	"io"
	"time"
)

// unfinishedSilence is how long a server may be silent within the event of its response. Some servers write no blank line
// after their last event, and leave the stream open.
const unfinishedSilence = 100 * time.Millisecond

// more reads more of the stream. It returns [io.EOF] if the unfinished event holds the response, and nothing follows.
func (a *answerStream) more(p []byte) (int, error) {
	if !a.MayHoldMessage() {
		return a.ReadCloser.Read(p)
	}
	n, end, read := 0, error(nil), make(chan struct{})
	buf := make([]byte, len(p)) // the read may outlast this call, which p does not
	go func() {
		defer close(read)
		n, end = a.ReadCloser.Read(buf) // it returns when the stream is closed
	}()
	silence := time.NewTimer(unfinishedSilence)
	defer silence.Stop()
	select {
	case <-read:
	case <-silence.C:
		if a.holdsResponse() {
			return 0, io.EOF
		}
		<-read
	}
	return copy(p, buf[:n]), end
}

// holdsResponse reports whether the unfinished event holds the response to the exchange. What follows a whole response can
// only be another field of the event.
func (a *answerStream) holdsResponse() bool {
	e := a.Unfinished()
	return e.IsMessage() && len(e.Data) > 0 && a.s.answers.IsResponse(e.Data, a.ex.MessageID())
}
