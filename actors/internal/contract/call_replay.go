package contract

import (
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// MayHaveRun reports whether the call may have run before: until its record was read, a durable call may have.
func (k *Call) MayHaveRun() bool { return k.Run.Lost != nil || k.IsDurable() && k.Record == nil }

// maxUnprocessed is how many runs of a call are not counted as a replay, because the server
// has certainly not processed them.
const maxUnprocessed = 6

// NoteUnprocessed notes a run that the server has not processed: there was no connection, or an HTTP/2 server
// has said so, about requests that exceed its limit of streams, or that arrive just before it closes the
// connection. It may say the same on the next connection. A call that the bridge has withheld did not run.
func (k *Call) NoteUnprocessed(e *mcpbridge.Error) {
	switch {
	case k.Run.Task != nil: // it has run
	case WasWithheld(e) && k.Run.newRound:
		k.Run.Rounds = k.Run.Rounds.Unsent()
	case WasWithheld(e):
		k.Run.Attempts--
	case e.Class == mcpbridge.NotSent && k.Run.unprocessed < maxUnprocessed:
		k.Run.unprocessed++
	}
}

// WasWithheld reports whether a call was not sent because its session has ended, or is unheard.
func WasWithheld(e *mcpbridge.Error) bool {
	return e.Withheld && !e.MayHaveRun() && e.Session != mcpbridge.Alive
}

// Pause returns how long to wait before the next run. The first replay runs at once, on
// another connection; a server at its limit of streams needs a moment. random returns numbers in [0, 1).
func (k *Call) Pause(random func() float64) time.Duration {
	if k.Run.unprocessed < 2 {
		return 0
	}
	longest := 10 * time.Millisecond << k.Run.unprocessed
	return longest/2 + time.Duration(random()*float64(longest/2))
}

// MayReplay reports whether a call that has failed may be run again on the next
// connection: at most once, and only if that is safe. needsHint is true if that depends on
// the annotations of the tool, which are not known.
func (k *Call) MayReplay(e *mcpbridge.Error) (yes, needsHint bool) {
	replay := k.Op.Head().Replay
	switch {
	case k.Run.Task != nil: // the next connection follows the task, and runs nothing
		return e.Session != mcpbridge.Alive || e.Class == mcpbridge.Expired || e.Class == mcpbridge.NotSent || WasWithheld(e), false
	case WasWithheld(e):
		return true, false
	case k.Mint != nil && e.MayHaveRun():
		return false, false
	case k.Run.Attempts-k.Run.unprocessed > 1 || replay == messages.ReplayNever:
		return false, false
	case e.Class == mcpbridge.Expired || e.Class == mcpbridge.NotSent:
		return true, false
	case e.Class != mcpbridge.Lost && e.Session != mcpbridge.Unheard:
		return false, false
	case !e.MayHaveRun() || replay == messages.ReplayAlways || k.Op.Idempotent():
		return true, false
	case k.Tool() == "":
		return false, false
	case k.Run.Conn == nil: // it ran on another member
		return true, true
	}
	safe, known := k.Run.Conn.Hint(k.Tool())
	return safe || !known, !known
}
