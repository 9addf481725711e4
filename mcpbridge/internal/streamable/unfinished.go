package streamable

import "time"

// unfinishedSilence is how long a server may be silent within the event of its response. Some servers write no blank line
// after their last event, and leave the stream open.
const unfinishedSilence = 100 * time.Millisecond

// more reads more of the stream. It closes the stream if the unfinished event holds the response, and nothing follows.
func (a *answerStream) more(p []byte) (int, error) {
	if !a.MayHoldMessage() {
		return a.ReadCloser.Read(p)
	}
	seen := make(chan struct{})
	silence := time.AfterFunc(unfinishedSilence, func() {
		defer close(seen)
		if a.holdsResponse() {
			a.ReadCloser.Close() //nolint:errcheck // it ends the read
		}
	})
	n, err := a.ReadCloser.Read(p)
	if !silence.Stop() {
		<-seen // before the event changes
	}
	return n, err
}

// holdsResponse reports whether the unfinished event holds the response to the exchange. What follows a whole response can
// only be another field of the event.
func (a *answerStream) holdsResponse() bool {
	e := a.Unfinished()
	return e.IsMessage() && len(e.Data) > 0 && a.s.answers.IsResponse(e.Data, a.ex.MessageID())
}
