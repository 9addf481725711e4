package handles

import (
	"errors"
	"slices"

	"github.com/mcpactor/mcpactor/messages"
)

// Attempt is the release of one handle: what is called next, and what that has come to. It may be used in any goroutine, one at a time.
//
//	List, if the handle may be released ──is there──▶ Call ──answer──▶ Finished
//	                        ▲                          │ ▲
//	                        └──── may have run ────────┘ └── has not run, or is still there
type Attempt struct {
	Kind    *Kind
	ID      string
	By      messages.Key
	Outcome Outcome // when it is finished

	next       Step
	calls      int
	suspect    suspicion // of the handle
	mayHaveRun bool      // it may be released
}

// Step is what is done next.
type Step int

// The steps.
const (
	Call     Step = iota // the tool that releases
	List                 // the tool that lists
	Finished             // nothing: there is an outcome
)

// maxCalls bounds the calls of one attempt.
const maxCalls = 3

// Attempt returns the release of a handle.
func (h *Handle) Attempt() *Attempt {
	a := &Attempt{Kind: h.Kind, ID: h.ID, By: h.By, suspect: h.suspect}
	if a.mayHaveRun = h.IsDoubtful; a.mayHaveRun && a.Kind.listed != nil {
		a.next = List
	}
	return a
}

// Next returns what is done next.
func (a *Attempt) Next() Step { return a.next }

// errAnother is why a call is not sent.
var errAnother = errors.New("the connection was lost, and the id may be another handle's by now")

// Begin returns an error if a call may not be sent any more. It may be called in any goroutine, just before.
func (a *Attempt) Begin() error {
	if a.suspect.isRaised() && !a.Kind.IsUnique(a.ID) {
		return errAnother
	}
	return nil
}

// Answered notes the answer of the tool that releases.
func (a *Attempt) Answered(said Answer) {
	switch {
	case said.Gone:
		a.finish(Outcome{Gone: true})
	case said.IsErr:
		a.finish(Outcome{Left: a.Kind.Release + " has returned an error", Refused: true})
	default:
		a.finish(Outcome{})
	}
}

// Failed notes that the tool that releases was not answered. It is called again if that is safe: it certainly did not run, or is still needed. The next
// session may be one of a server that has minted an id anew which is not unique.
func (a *Attempt) Failed(f *messages.Failure) {
	a.calls++
	a.mayHaveRun = a.mayHaveRun || f.MayHaveRun
	looks := f.MayHaveRun && a.Kind.listed != nil
	switch {
	case a.calls >= maxCalls, slices.Contains(final, f.Code), !looks && !a.Kind.IsUnique(a.ID):
		a.giveUp(f)
	case looks:
		a.next = List
	}
}

// final are the codes of failures after which another call makes no sense.
var final = []messages.Code{messages.CodeDeadline, messages.CodeClosed, messages.CodeInvalid, messages.CodeUnknownServer}

func (a *Attempt) giveUp(f *messages.Failure) {
	why := "no answer of " + a.Kind.Release + ": " + string(f.Code)
	if a.mayHaveRun {
		why = "it may be released: " + why
	}
	a.finish(Outcome{Left: why, Doubtful: a.mayHaveRun})
}

// Listed notes which handles there are. known is false if the server has not said so.
func (a *Attempt) Listed(ids []string, known bool) {
	switch {
	case known && !slices.Contains(ids, a.ID):
		a.finish(Outcome{Gone: true})
	case a.Kind.IsUnique(a.ID) && (known || a.calls == 0): // it is needed, or was never called here
		a.next = Call
	default:
		a.finish(Outcome{Left: "it may be released: " + a.Kind.Release + " was not answered", Doubtful: true})
	}
}

func (a *Attempt) finish(o Outcome) { a.Outcome, a.next = o, Finished }
