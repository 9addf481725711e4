package outbound

import (
	"io"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// Pause is how long a server may take to end an event after the message in it. Some servers write no blank line after an
// event.
const Pause = 100 * time.Millisecond

// Pauses reads a stream of events, and finds a message whose event does not end. The zero value is ready for use with one
// body. One goroutine uses it.
type Pauses struct {
	due     time.Time // of the message that may have come; zero for none
	reading chan read // gets the result of the read that runs in another goroutine; nil without one
}

// read is the result of a read.
type read struct {
	data []byte
	err  error
}

// Read returns the next data of a body. into is a buffer for it. isPause is true, without data, if the incomplete event has
// held a message for a Pause.
func (p *Pauses) Read(body io.Reader, events *rpc.EventBuffer, into []byte) (data []byte, isPause bool, err error) {
	mayHold := events.MayHoldMessage()
	if !mayHold {
		p.due = time.Time{}
		if p.reading == nil { // most events come whole
			n, err := body.Read(into)
			return into[:n], false, err
		}
	}
	if p.reading == nil {
		p.start(body, len(into))
	}
	if mayHold && p.awaitDue() && events.HoldsMessage() {
		return nil, true, nil
	}
	r := <-p.reading
	p.reading = nil
	return r.data, false, r.err
}

// start begins to read in another goroutine.
func (p *Pauses) start(body io.Reader, size int) {
	reading := make(chan read, 1)
	p.reading = reading
	go func() {
		into := make([]byte, size)
		n, err := body.Read(into)
		reading <- read{into[:n], err}
	}()
}

// awaitDue waits until the message is due. It returns false if data came before.
func (p *Pauses) awaitDue() bool {
	if p.due.IsZero() {
		p.due = time.Now().Add(Pause)
	}
	timer := time.NewTimer(time.Until(p.due))
	defer timer.Stop()
	select {
	case r := <-p.reading:
		p.reading <- r
		return false
	case <-timer.C:
		p.due = time.Time{}
		return true
	}
}
