package link

import (
	"errors"
	"slices"
)

// Message is a message to or from another member.
type Message struct {
	Type string
	ID   uint64
	Head []byte // what goes with the body, or nil; read-only
	Body []byte // read-only
}

// cost is what a message counts beside its body, in bytes.
const cost = 256

// size returns what a message counts, in bytes.
func (m Message) size() int { return len(m.Head) + len(m.Body) + cost }

const (
	// MaxMessage is the most that the body of a message may have, in bytes.
	MaxMessage = 64 << 20
	// maxHeld is how many bytes may wait for a member.
	maxHeld = 64 << 20
)

var (
	// ErrFull says that too much is waiting for the member.
	ErrFull = errors.New("too much is waiting for the member")
	// ErrLarge says that a message is too large.
	ErrLarge = errors.New("the message is larger than 64 MiB")
)

// Sent is a message that was added to an [Outbox].
//
//	waiting ──Take──▶ written ──Acknowledged──▶ arrived
//	   ▲  └─Withdraw─▶ withdrawn  │
//	   └────────Resume────────────┘
type Sent struct {
	Message
	written bool
}

// Outbox has the messages that the peer may not have, in their order. One goroutine at a time uses it. The
// zero value is ready.
type Outbox struct {
	list    []*Sent // those that are written come first
	written int
	arrived uint64 // how many messages the peer has got
	held    int    // what the list counts, in bytes
}

// Add adds a message. It fails if too much is waiting; urgent ones are added nevertheless.
func (o *Outbox) Add(m Message, urgent bool) (*Sent, error) {
	switch {
	case len(m.Body) > MaxMessage:
		return nil, ErrLarge
	case o.held > maxHeld && !urgent:
		return nil, ErrFull
	}
	s := &Sent{Message: m}
	o.list = append(o.list, s)
	o.held += m.size()
	return s, nil
}

// Take appends the next messages that are to be written to batch: one, and more as long as they have at most
// a number of bytes together. They count as written.
func (o *Outbox) Take(batch []Message, most int) []Message {
	for size := 0; o.written < len(o.list); o.written++ {
		s := o.list[o.written]
		if size += s.size(); size > most && len(batch) > 0 {
			break
		}
		s.written = true
		batch = append(batch, s.Message)
	}
	return batch
}

// Acknowledged forgets the messages that the peer has: all of the first count ones. It reports false if the
// peer cannot have them.
func (o *Outbox) Acknowledged(count uint64) bool {
	if count < o.arrived || count-o.arrived > uint64(o.written) {
		return false
	}
	n := int(count - o.arrived)
	for _, s := range o.list[:n] {
		o.held -= s.size()
	}
	o.list = slices.Delete(o.list, 0, n)
	o.arrived, o.written = count, o.written-n
	return true
}

// Resume is Acknowledged for a new connection, on which the peer says first what it has. The messages that it has
// not were lost with the previous connection: they wait again.
func (o *Outbox) Resume(count uint64) bool {
	if !o.Acknowledged(count) {
		return false
	}
	for _, s := range o.list[:o.written] {
		s.written = false
	}
	o.written = 0
	return true
}

// Withdraw takes a message back. It reports whether the peer has not got it, and will not get it: it is not
// written. The message may be one of another outbox, or one that [Outbox.Drop] has removed.
func (o *Outbox) Withdraw(s *Sent) bool {
	if s.written {
		return false
	}
	if at := slices.Index(o.list[o.written:], s); at >= 0 {
		o.remove(o.written + at)
	}
	return true
}

// remove removes one message of the list.
func (o *Outbox) remove(at int) {
	o.held -= o.list[at].size()
	o.list = slices.Delete(o.list, at, at+1)
}

// Trim removes the oldest messages that are not written until at most a number is left.
func (o *Outbox) Trim(most int) {
	for len(o.list)-o.written > most {
		o.remove(o.written)
	}
}

// Drop removes all messages. Those that are not written count as withdrawn.
func (o *Outbox) Drop() { o.list, o.written, o.held = nil, 0, 0 }

// Idle reports whether the peer has all messages.
func (o *Outbox) Idle() bool { return len(o.list) == 0 }

// Held returns how many bytes wait for the peer, or for its acknowledgement.
func (o *Outbox) Held() int { return o.held }

// Address is one incarnation of a member, and where it is reached.
type Address struct {
	ID   string `json:"id"`
	Host string `json:"host"` // host:port
}

// State is what is known of the other member of a link.
type State struct {
	// Connected says that the member takes messages.
	Connected bool
	// Ended says that the incarnation has ended: another one answers at its address.
	Ended bool
	// Version is the version of the protocol that the member speaks, if that is another one, or 0.
	Version uint32
}
