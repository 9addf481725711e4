package doubt

import (
	"net/http"
	"slices"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// Outcome returns what a refusal in doubt means after a verdict other than alive. earlier is true if
// the server has accepted an earlier request of the operation.
func (i *Inquiry) Outcome(e *mcpbridge.Error, earlier, isResumable bool) *mcpbridge.Error {
	settled, notRun := *e, !earlier && i.provesNotRun(e)
	settled.Doubt = false
	switch {
	case i.Verdict == Late && notRun:
		settled.Class = mcpbridge.NotSent
		return &settled
	case i.Verdict != Dead:
		return e
	}
	settled.Class, settled.Session = mcpbridge.Lost, mcpbridge.Gone
	settled.Detail, settled.Quote = "the server refuses the session", e.ForCaller() // the words of the server may quote arguments
	if !isResumable {
		settled.Session = mcpbridge.Broken
	}
	if notRun {
		settled.Class = mcpbridge.Expired
	}
	return &settled
}

// provesNotRun reports whether a refusal of a call on a dead session shows that the call did not run. It does so if a
// check was refused alike, and a check with an id that was never issued was refused in the same words: such a server
// refuses a session before it looks at a request. Without session ids, a 4xx without the id of the call is
// believed, unless it is a page.
func (i *Inquiry) provesNotRun(e *mcpbridge.Error) bool {
	isAlike := func(refusal *mcpbridge.Error) bool { return wire.Alike(e, refusal) }
	switch {
	case !slices.ContainsFunc(i.refused, isAlike), e.Class == mcpbridge.Lost, e.Status >= 500,
		e.Status == http.StatusFound, e.Status == http.StatusSeeOther, e.Status == http.StatusRequestTimeout:
		return false
	case !i.hasID && e.Status >= 300 && !e.Own && !wire.EvidenceOf(e).Front:
		return true
	}
	digest := wire.EvidenceOf(e).Digest
	return digest != wire.Evidence{}.Digest && slices.ContainsFunc(i.unknown, func(unknown *mcpbridge.Error) bool {
		return isAlike(unknown) && unknown.Own == e.Own && wire.EvidenceOf(unknown).Digest == digest
	})
}
