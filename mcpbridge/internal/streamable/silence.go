package streamable

import (
	"io"
	"time"
)

// silence is how long a server may be silent within the event of its response. Some servers write no blank line after their
// last event, and leave the stream open.
const silence = 100 * time.Millisecond

// readUntilSilent reads from a body, as a Read of it does. If nothing comes for a while and isDone returns true then, it
// closes the body, which ends the read. isDone is called in another goroutine, and has returned when readUntilSilent returns.
func readUntilSilent(body io.ReadCloser, p []byte, isDone func() bool) (int, error) {
	asked := make(chan struct{})
	timer := time.AfterFunc(silence, func() {
		defer close(asked)
		if isDone() {
			body.Close()
		}
	})
	n, err := body.Read(p)
	if !timer.Stop() {
		<-asked
	}
	return n, err
}
