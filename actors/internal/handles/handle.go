package handles

import (
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// Handle is a handle that was minted, and that is not known to be released. Only the book changes it.
type Handle struct {
	Name
	Kind       *Kind
	By         messages.Key // over whose session it is released
	Record     messages.Key // of the store
	Generation uint64       // of the MCP session that has minted it
	Minted     time.Time
	Used       time.Time
	// IsDoubtful says that it may be released: List is asked first, if there is one.
	IsDoubtful bool

	state    state
	key      messages.Key // of the call that has minted it
	holders  []Holder
	idled    []Holder  // from whom it was taken because it was idle
	busy     int       // calls under way that use it
	turn     int       // when its mint was granted; or when it was found in a list
	restored Holder    // who has held it in an earlier process
	isOrphan bool      // who has not come back yet
	suspect  suspicion // it may be another one by now, if it is not unique
	cut      bool      // it is released although calls use it
	ends     []*End    // that wait for it
	why      string    // it is left
	tries    int       // to release it
	triedAt  time.Time // the last one
}

// state is what is known of a handle.
type state int

const (
	held state = iota
	releasing
	left
	over
)

// fullID returns the ID of the handle, which is that of no other handle of its kind.
func (h *Handle) fullID() string { return h.Kind.fullID(h.ID, h.key.Scope) }

// isHeldBy reports whether a holder that matches holds it.
func (h *Handle) isHeldBy(matches func(Holder) bool) bool {
	return slices.ContainsFunc(h.holders, matches)
}

// heldBy adds a holder, also if the handle is being released: that may fail.
func (h *Handle) heldBy(by Holder) {
	if h.state == held || h.state == left {
		h.state, h.why, h.cut, h.tries = held, "", false, 0
	}
	if h.isOrphan && by == h.restored {
		h.isOrphan = false
	}
	if !slices.Contains(h.holders, by) {
		h.holders = append(h.holders, by)
		h.handsOver()
	}
}

// handsOver has a handle released over the session of one of those that hold it still, unless it is bound to the one that has minted it. One that is
// being released is not handed over: the end of its session waits for that.
func (h *Handle) handsOver() {
	if h.state != releasing && len(h.holders) > 0 && !h.Kind.Bound && !slices.ContainsFunc(h.holders, func(o Holder) bool { return o.Scope == h.By.Scope }) {
		h.By = messages.Key{Server: h.Server, Scope: h.holders[0].Scope}
	}
}

// mayBeAnother reports whether the id may be that of somebody else's handle by now.
func (h *Handle) mayBeAnother() bool {
	return (h.suspect.isRaised() || h.IsDoubtful && h.Kind.listed == nil) && !h.Kind.IsUnique(h.ID)
}

// suspicion is closed when a handle may be another one by now. Unlike the rest of a handle, any goroutine may look.
type suspicion chan struct{}

func (s suspicion) isRaised() bool {
	select {
	case <-s:
		return true
	default:
		return false
	}
}

func (s suspicion) raise() {
	if !s.isRaised() {
		close(s)
	}
}

// Mint is a call that mints a handle. Only the book changes it, once it was asked about.
type Mint struct {
	Kind   *Kind
	By     messages.Key // of the call
	Holder Holder
	Record messages.Key // of the store, once the call may have been sent
	Since  time.Time
	Ticket any // of whoever asks

	state   mintState
	ended   bool      // its holder has ended
	suspect bool      // what it mints may be another one's by the time that it is known
	opened  uint64    // the generation of the session that has opened last since it was granted
	lostAt  time.Time // when its answer was lost
	moved   bool      // another member of the cluster has its key by now
	turn    int       // when it was granted, or 0
	found   string    // what a list says that it has minted
	ends    []*End    // that wait for its answer
}

type mintState int

const (
	waiting mintState = iota
	underWay
	lost    // its answer
	settled // by a list
	done
)

// Use is a call that has a handle as an argument.
type Use struct {
	of       *Handle
	by       Holder
	Kind     *Kind
	Releases bool // it calls the tool that releases the handle
}

// End is the end of holders, until their handles are released or named.
type End struct {
	// Released is how many handles were released, or were gone, and Left are those that could not be released.
	Released int
	Left     []messages.Left

	grace time.Time // when calls that use the handles are waited for no longer
	by    time.Time // when all is named that is not released
	waits map[*Handle]bool
	mints map[*Mint]bool
}

// isOver reports whether there is nothing to wait for.
func (e *End) isOver() bool { return len(e.waits)+len(e.mints) == 0 }

// left names a handle that is not released.
func (e *End) left(key messages.Key, mint, reason string) {
	e.Left = append(e.Left, messages.Left{Key: key, Handle: mint, Reason: reason})
}
