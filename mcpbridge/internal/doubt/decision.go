package doubt

import (
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Session is what is known of a session when a fact is reported.
type Session struct {
	Now time.Time
	// Begun is how many operations have begun. Succeeded is the number of the last one that had a result.
	Begun, Succeeded uint64
	// ConnectTimeout is how long a control may take.
	ConnectTimeout time.Duration

	HasEnded   bool // the connection has been cut
	HasID      bool // a check can be sent with an id that was never issued
	HasList    bool // the server has declared a list
	IsFresh    bool // it has answered nothing since initialize
	MayRefuse  bool // a refusal can be about the session
	MayRefresh bool // it has credentials that an attempt to resume it may refresh
	Resumable  bool // the server keeps the session without its connection
}

// Do is what is to be done.
type Do string

// The decisions. What Stop ends, and what follows from an earlier step, needs no report, but for a control.
const (
	Stop    Do = "stop"    // the answers to the last step, and the control it opens, are not needed any more
	Ask     Do = "ask"     // send Check on the session; then Answered
	Unknown Do = "unknown" // send Check with a session id that was never issued; then Answered
	Compare Do = "compare" // send Check on the control; then Answered
	Open    Do = "open"    // open a control; then Opened, NotOpened or NotAllowed
	Keep    Do = "keep"    // keep the control for the next dial
	Discard Do = "discard" // end the control; then Done
	Known   Do = "known"   // the server knows the fresh session now
	Expire  Do = "expire"  // the session is dead, because of Refusal; then Done
)

// Decision is what the machine has decided.
type Decision struct {
	Do         Do
	Step       int // to be given to Answered
	Check      Check
	MayRefresh bool             // of Ask: the check may refresh the credentials
	IsAway     bool             // of Open: while the server is away, the pace of its controls is limited
	IsFree     bool             // of Open: it needs no permit
	Until      time.Time        // of Open
	Refusal    *mcpbridge.Error // of Expire
}
