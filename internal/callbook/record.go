package callbook

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// State says what has become of a call.
type State string

// The states of a call.
const (
	None     State = ""         // there is no record
	Proposed State = "proposed" // waits for an answer
	Allowed  State = "allowed"  // may be sent: it has certainly not run
	Sent     State = "sent"     // may run
	Asked    State = "asked"    // runs, and its server waits for the next round
	Task     State = "task"     // runs as a task of its server
	Unknown  State = "unknown"  // may have run; nobody waits for its answer
	Asking   State = "asking"   // as Unknown, and somebody finds out
	Done     State = "done"     // has run
	Failed   State = "failed"   // has not run, and never will
)

// Record is what the store has of one call. It is a value: its methods return the next one.
type Record struct {
	State State `json:"state"`
	// Call identifies the server, the tool and the arguments.
	Call string `json:"call"`
	// Token is the id that the server sees. It is the same for each send.
	Token string `json:"token"`
	// Proposal is what somebody was asked about, in the form of whoever has asked. It is empty if nobody was. What follows says it
	// in a few words. The arguments are kept until the call is over.
	Proposal  json.RawMessage `json:"proposal,omitempty"`
	Key       messages.Key    `json:"key,omitzero"`
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Since     time.Time       `json:"since,omitzero"`
	// By is who has sent the call, or finds out what became of it, and Ends is when it has ended that.
	By   string    `json:"by,omitempty"`
	Ends time.Time `json:"ends,omitzero"`
	// Round is what the server of a call has last asked for. It is kept until the call is over.
	Round json.RawMessage `json:"round,omitempty"`
	// Task is the id of the task that the call has become.
	Task string `json:"task,omitempty"`
	// Result is the result of a call that has run, if it is kept.
	Result json.RawMessage `json:"result,omitempty"`
	// Failure is why a call has failed, or why its result is not known.
	Failure *messages.Failure `json:"failure,omitempty"`
	// Cancelled says that the call is not sent again, even if it has not run.
	Cancelled bool `json:"cancelled,omitempty"`
	// Resolved says that it was asked what became of the call, and that nobody knows.
	Resolved bool `json:"resolved,omitempty"`
	// ResultUntil is when the result is dropped, and Until when the record is.
	ResultUntil time.Time `json:"resultUntil,omitzero"`
	Until       time.Time `json:"until"`
}

// Propose returns the record of a call that waits for an answer until a time.
func Propose(op *messages.CallTool, proposal json.RawMessage, since, until time.Time) Record {
	arguments, _ := op.Params.Arguments.(json.RawMessage)
	return Record{
		State: Proposed, Call: DigestOf(op), Token: rand.Text(), Until: until,
		Proposal: proposal, Key: op.Key.Normal(), Tool: op.Params.Name, Arguments: arguments, Since: since,
	}
}

// Allow returns the record of a call that may be sent: it was allowed, or has certainly not run.
func (r Record) Allow() Record {
	if r.Cancelled {
		return r.Fail(&messages.Failure{Code: messages.CodeCancelled, Detail: "it was cancelled after it was sent, and has not run"})
	}
	r.State, r.By, r.Ends, r.Failure, r.Round = Allowed, "", time.Time{}, nil, nil
	return r
}

// Cancel returns the record of a call that is not sent any more.
func (r Record) Cancel(f *messages.Failure) Record {
	if r.State == Proposed || r.State == Allowed {
		return r.Fail(f)
	}
	r.Cancelled = true
	return r
}

// IsInUse reports whether the call waits, or may be sent or run by a process that has not given it up.
func (r Record) IsInUse(now time.Time) bool {
	switch r.State {
	case Proposed, Allowed:
		return true
	case Sent, Asking:
		return now.Before(r.Ends)
	}
	return false
}

// Send returns the record of a call that is about to be sent, and is over at a time.
func (r Record) Send(by string, ends time.Time) Record {
	r.State, r.By, r.Ends, r.Until = Sent, by, ends, later(r.Until, ends.Add(keptAfter))
	return r
}

// keptAfter is how long a call is kept after it is over.
const keptAfter = 24 * time.Hour

// later returns the later one of two times.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Asks returns the record of a call whose server asks for input. The next round is sent by whoever has the answers first.
func (r Record) Asks(round json.RawMessage) Record {
	r.State, r.Round, r.By, r.Ends = Asked, round, "", time.Time{}
	return r
}

// Become returns the record of a call that has become a task.
func (r Record) Become(task string) Record {
	r.State, r.Task, r.Round = Task, task, nil
	return r
}

// Lose returns the record of a call that may have run. The failure says why nobody waits for its answer.
func (r Record) Lose(f *messages.Failure) Record {
	r.State, r.Failure, r.Task, r.Round = Unknown, f, "", nil
	return r
}

// Ask returns the record of a call of which somebody finds out what became of it.
func (r Record) Ask(by string, ends time.Time) Record {
	r.State, r.By, r.Ends = Asking, by, ends
	return r
}

// Forget returns the record of a call of which nobody can find out what became of it.
func (r Record) Forget() Record {
	r.State, r.Resolved, r.Arguments = Unknown, true, nil
	return r
}

// Finish returns the record of a call that has run. A result that is not kept is nil.
func (r Record) Finish(result json.RawMessage, until time.Time) Record {
	r.State, r.Result, r.ResultUntil, r.Failure, r.Task, r.Arguments, r.Round = Done, result, until, nil, "", nil, nil
	r.Until = later(r.Until, until)
	return r
}

// Fail returns the record of a call that will never run.
func (r Record) Fail(f *messages.Failure) Record {
	r.State, r.Failure, r.Arguments, r.Round = Failed, f, nil, nil
	return r
}

// IsOver reports whether the call will not change any more.
func (r Record) IsOver() bool {
	return r.State == Done || r.State == Failed || r.State == Unknown && r.Resolved
}

// isOutcome reports whether the record only says what became of a call that was sent or proposed before.
func (r Record) isOutcome() bool {
	switch r.State {
	case Allowed, Asked, Task, Unknown, Done, Failed:
		return true
	}
	return false
}

// isOutdated reports whether nobody asks for the call any more.
func (r Record) isOutdated(now time.Time) bool { return !r.Until.IsZero() && now.After(r.Until) }

// withoutSecrets returns the record without a result that is kept no longer, and reports whether there was one.
func (r Record) withoutSecrets(now time.Time) (Record, bool) {
	if r.Result == nil || !now.After(r.ResultUntil) {
		return r, false
	}
	r.Result = nil
	return r, true
}

// Step is what whoever asks for a call does next.
type Step int

// The steps.
const (
	Run    Step = iota // the call or its next round is sent, or its task followed
	Wait               // somebody else has sent it, or finds out what became of it
	Learn              // find out what became of it
	Tell               // the record says what became of it
	Refuse             // the record is of another call, or waits for an answer
)

// Next returns what whoever asks for a call does. me is the process that asks, in which nobody else works on the call. resolves
// is true if it can find out what became of a call.
func (r Record) Next(call, me string, resolves bool, now time.Time) Step {
	switch {
	case r.State == None:
		return Run
	case r.Call != call, r.State == Proposed:
		return Refuse
	}
	switch r.State {
	case Allowed, Task:
		return Run
	case Asked:
		if !r.Cancelled {
			return Run
		}
	case Sent, Asking:
		switch {
		case isOf(r.By, me): // who has sent it is gone
		case now.Before(r.Ends):
			return Wait
		}
		if resolves {
			return Learn
		}
	case Unknown:
		if resolves && !r.Resolved {
			return Learn
		}
	}
	return Tell
}

// encode returns the record as a store has it.
func (r Record) encode(version uint64) (*mcpbridge.Record, error) {
	data, err := json.Marshal(r)
	return &mcpbridge.Record{Call: data, Version: version}, err
}

// decode returns what a store has. It is zero if there is no record, or one that is outdated.
func decode(kept *mcpbridge.Record, now time.Time) (r Record, version uint64, err error) {
	if kept == nil {
		return Record{}, 0, nil
	}
	if err := json.Unmarshal(kept.Call, &r); err != nil || r.State == None {
		return Record{}, kept.Version, errUnreadable
	}
	if r.isOutdated(now) {
		r = Record{}
	}
	return r, kept.Version, nil
}

// IsOutcome reports whether a record of a store only says what became of a call that was sent or proposed before.
func IsOutcome(kept *mcpbridge.Record) bool {
	r, _, err := decode(kept, time.Time{})
	return err == nil && r.isOutcome()
}

// DigestOf identifies what a call does: its server, its tool and its arguments. It does not panic if they do when they are encoded.
func DigestOf(op *messages.CallTool) string {
	text, _ := guard.Call(func() ([]byte, error) { // what cannot be encoded is not sent either
		return json.Marshal([]any{op.Key.Normal().Server, op.Params.Name, op.Params.Arguments})
	})
	return fmt.Sprintf("%x", sha256.Sum256(text))
}
