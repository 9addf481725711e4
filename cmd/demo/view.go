package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// view shows the events and the faults of the show.
type view interface {
	// note shows one line. fault is true for what the show itself does.
	note(fault bool, text string)
	// run shows the notes until ctx ends. It calls interrupt if the user ends the show.
	run(ctx context.Context, interrupt func())
}

// plain is the view for files and pipes. It prints a line for each note.
type plain struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
}

func newPlain(out io.Writer) *plain { return &plain{out: out, began: time.Now()} }

func (v *plain) note(fault bool, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	mark := "  "
	if fault {
		mark = "! "
	}
	fmt.Fprintf(v.out, "%6.2fs %s%s\n", time.Since(v.began).Seconds(), mark, text)
}

func (v *plain) run(ctx context.Context, _ func()) { <-ctx.Done() }

// describe returns an event in words.
func describe(event messages.Event) string {
	key := event.GetStamp().Key
	switch e := event.(type) {
	case *messages.SessionOpened:
		return fmt.Sprintf("%s opened in %v, generation %d", key, short(e.Elapsed), e.Generation)
	case *messages.SessionExpired:
		return fmt.Sprintf("%s expired", key)
	case *messages.SessionLost:
		return fmt.Sprintf("the connection of %s broke", key)
	case *messages.SessionRestarting:
		when := "at once"
		if short(e.Delay) > 0 {
			when = fmt.Sprint("in ", short(e.Delay))
		}
		return fmt.Sprintf("%s restarts %s, attempt %d", key, when, e.Attempt)
	case *messages.SessionRestarted:
		if e.Attached {
			return fmt.Sprintf("%s resumed after %v, its state kept", key, short(e.Elapsed))
		}
		return fmt.Sprintf("%s rebuilt after %v, generation %d", key, short(e.Elapsed), e.Generation)
	case *messages.SessionGaveUp:
		return fmt.Sprintf("%s gave up", key)
	case *messages.SessionEvicted:
		return fmt.Sprintf("%s evicted (%s)", key, e.Reason)
	case *messages.SessionClosed:
		return fmt.Sprintf("%s closed", key)
	}
	return fmt.Sprintf("%s %s", key, event.EventName())
}

// calls returns a number of calls in words.
func calls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprint(n, " calls")
}

func short(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
