// Package link carries messages between two members of a cluster, in both directions, over
// a transport that may lose, repeat and reorder frames.
//
// Each message arrives exactly once, or not at all if the peer ends. Small messages arrive in
// the order in which they were sent. A large one is cut into parts that take turns with other
// messages, so that it does not delay them. What is on its way is bounded in bytes.
//
// A Link is a state machine without goroutines, locks and clocks. One goroutine uses it.
package link

import (
	"bytes"
	"container/list"
	"errors"
	"time"
)

const (
	// PartSize is the most that one frame has of a message, in bytes.
	PartSize = 64 << 10
	// window is how many bytes may be sent and not acknowledged.
	window = 1 << 20
	// windowFrames is how many frames may be sent and not acknowledged.
	windowFrames = 512
	// maxQueued is how many bytes of messages may wait to be sent.
	maxQueued = 64 << 20
	// MaxMessage is the most that one message may have, in bytes.
	MaxMessage = 64 << 20
	// maxPartial is how many bytes of messages that are not complete a peer may have here.
	maxPartial = 2 * MaxMessage
	// ackFrames and ackBytes are how much may be received before it is acknowledged at once.
	ackFrames, ackBytes = 32, window / 4
	// ackDelay is how long an acknowledgement may wait for a frame that carries it.
	ackDelay = 10 * time.Millisecond
	// firstRetry and lastRetry are the bounds of the time after which frames without an
	// acknowledgement are sent again. It doubles each time.
	firstRetry, lastRetry = 500 * time.Millisecond, 4 * time.Second
	// frameCost is what a frame counts beside its body.
	frameCost = 256
)

// Frame is what the transport carries.
type Frame struct {
	Seq     uint64 // from 1; 0 only acknowledges
	Ack     uint64 // all frames of the other direction up to this one have come
	Message uint64 // the number of the message, from 1
	Last    bool   // the last part of the message
	Type    string // of the message, in its first part
	ID      uint64 // of the message, in its first part
	Body    []byte // the part. Read-only
}

// Message is a message to or from the peer.
type Message struct {
	Type string
	ID   uint64
	Body []byte // read-only
}

var (
	// ErrFull says that too much is waiting to be sent.
	ErrFull = errors.New("too much is waiting for the member")
	// ErrLarge says that a message is too large.
	ErrLarge = errors.New("the message is larger than 64 MiB")
)

// Sent says how much of a message the transport got.
type Sent struct {
	complete bool
	waiting  *list.Element // nil once a part was given to the transport
}

// MayHaveArrived reports whether the peer may have got the message: all its parts were given
// to the transport.
func (s *Sent) MayHaveArrived() bool { return s.complete }

// outgoing is a message of which parts are to be sent.
type outgoing struct {
	Message
	number uint64
	offset int
	sent   *Sent
}

// partial is a message of which some parts have come.
type partial struct {
	Message // without a body
	parts   [][]byte
	size    int // of the parts
}

// Link is one side of a link. The zero value is ready.
type Link struct {
	queue   list.List // *outgoing, in the order of their turns
	queued  int       // bytes of the queue that are to be sent
	begun   int       // bytes of the messages of which some parts were sent, and not all
	numbers uint64    // messages so far

	seq     uint64   // of the last frame
	unacked []*Frame // in the order of their seq
	flying  int      // what unacked counts
	sentAt  time.Time
	retry   time.Duration

	received    uint64            // the last frame that came in order
	ahead       map[uint64]*Frame // that came before an earlier one, by seq
	aheadSize   int               // what they count in the window
	partial     map[uint64]*partial
	partialSize int // of their parts, as they count in the window
	owed        int // frames without an acknowledgement
	owedBytes   int
	owedSince   time.Time
}

// Queue queues a message. It fails if too much is waiting; urgent ones are queued
// nevertheless.
func (l *Link) Queue(m Message, urgent bool) (*Sent, error) {
	switch {
	case len(m.Body) > MaxMessage:
		return nil, ErrLarge
	case l.queued > maxQueued && !urgent:
		return nil, ErrFull
	}
	l.numbers++
	o := &outgoing{Message: m, number: l.numbers, sent: new(Sent)}
	o.sent.waiting = l.queue.PushBack(o)
	l.queued += len(m.Body) + frameCost
	return o.sent, nil
}

// Withdraw takes a message of this link back. It reports whether the peer will not get it: no
// part was given to the transport.
func (l *Link) Withdraw(s *Sent) bool {
	if s.waiting == nil {
		return false
	}
	o := l.queue.Remove(s.waiting).(*outgoing)
	l.queued -= len(o.Body) + frameCost
	s.waiting = nil
	return true
}

// flush sends what may be sent now. Frames are read-only.
func (l *Link) flush(now time.Time, send func(*Frame)) {
	for l.queue.Len() > 0 && l.flying < window && len(l.unacked) < windowFrames {
		l.sendPart(now, send)
	}
	if l.owed >= ackFrames || l.owedBytes >= ackBytes || l.owed > 0 && now.Sub(l.owedSince) >= ackDelay {
		l.ack(send)
	}
}

// sendPart sends one part of the message whose turn it is.
func (l *Link) sendPart(now time.Time, send func(*Frame)) {
	at := l.queue.Front()
	o := at.Value.(*outgoing)
	if o.offset == 0 && len(o.Body) > PartSize {
		if l.begun > 0 && l.begun+len(o.Body) > MaxMessage {
			l.queue.MoveToBack(at) // the peer keeps the parts of a bounded number of bytes
			return
		}
		l.begun += len(o.Body)
	}
	o.sent.waiting = nil
	part := o.Body[o.offset:min(o.offset+PartSize, len(o.Body))]
	l.seq++
	f := &Frame{Seq: l.seq, Message: o.number, Body: part}
	if o.offset == 0 {
		f.Type, f.ID = o.Type, o.ID
	}
	o.offset += len(part)
	l.queued -= len(part)
	if o.offset == len(o.Body) {
		f.Last, o.sent.complete = true, true
		l.queued -= frameCost
		l.queue.Remove(at)
		if len(o.Body) > PartSize {
			l.begun -= len(o.Body)
		}
	} else {
		l.queue.MoveToBack(at)
	}
	if len(l.unacked) == 0 {
		l.sentAt, l.retry = now, firstRetry
	}
	l.unacked = append(l.unacked, f)
	l.flying += f.cost()
	l.transmit(f, send)
}

// cost returns what a frame counts in the window.
func (f *Frame) cost() int { return len(f.Body) + frameCost }

// transmit gives a frame to the transport, with the latest acknowledgement.
func (l *Link) transmit(f *Frame, send func(*Frame)) {
	copied := *f // the transport may still read the previous one
	copied.Ack = l.received
	l.owed, l.owedBytes = 0, 0
	send(&copied)
}

// ack sends an acknowledgement alone.
func (l *Link) ack(send func(*Frame)) { l.transmit(&Frame{}, send) }

// Tick sends frames again that were not acknowledged for long, and acknowledgements that are
// due. It returns when it wants to be called again, or zero if that is not before the next
// Queue or Receive.
func (l *Link) Tick(now time.Time, send func(*Frame)) (next time.Time) {
	if len(l.unacked) > 0 && now.Sub(l.sentAt) >= l.retry {
		l.sentAt, l.retry = now, min(2*l.retry, lastRetry)
		for _, f := range l.unacked {
			l.transmit(f, send)
		}
	}
	l.flush(now, send)
	if len(l.unacked) > 0 {
		next = l.sentAt.Add(l.retry)
	}
	if due := l.owedSince.Add(ackDelay); l.owed > 0 && (next.IsZero() || due.Before(next)) {
		next = due
	}
	return next
}

// Receive takes a frame of the peer. It calls deliver with the message that the frame
// completes.
func (l *Link) Receive(now time.Time, f *Frame, deliver func(Message)) {
	l.acknowledged(now, f.Ack)
	if f.Seq == 0 {
		return
	}
	if l.owed == 0 {
		l.owedSince = now
	}
	l.owed++
	l.owedBytes += len(f.Body)
	if f.Seq != l.received+1 {
		l.owed = max(l.owed, ackFrames) // a repetition, or a gap: tell the peer at once
		l.keep(f)
		return
	}
	for f != nil && l.take(f, deliver) {
		f = l.ahead[l.received+1]
	}
}

// keep keeps a frame that came before an earlier one, if the peer may have sent it.
func (l *Link) keep(f *Frame) {
	if f.Seq <= l.received || f.Seq-l.received > windowFrames || l.ahead[f.Seq] != nil || l.aheadSize+f.cost() > window+PartSize+frameCost {
		return
	}
	if l.ahead == nil {
		l.ahead = map[uint64]*Frame{}
	}
	l.ahead[f.Seq] = f
	l.aheadSize += f.cost()
}

// take takes the next frame in order. It reports false if the peer breaks the rules: it gets no
// further.
func (l *Link) take(f *Frame, deliver func(Message)) bool {
	m, begun := l.partial[f.Message]
	if m == nil {
		m = &partial{Message: Message{Type: f.Type, ID: f.ID}}
	}
	size := f.cost()
	if !begun && f.Last {
		size = 0 // it is not kept
	}
	if l.partialSize+size > maxPartial || m.size+len(f.Body) > MaxMessage {
		return false
	}
	l.received = f.Seq
	if l.ahead[f.Seq] != nil {
		l.aheadSize -= l.ahead[f.Seq].cost()
		delete(l.ahead, f.Seq)
	}
	if !begun && f.Last {
		m.Body = f.Body
		deliver(m.Message)
		return true
	}
	m.parts = append(m.parts, f.Body)
	m.size += len(f.Body)
	l.partialSize += size
	if !f.Last {
		if l.partial == nil {
			l.partial = map[uint64]*partial{}
		}
		l.partial[f.Message] = m
		return true
	}
	delete(l.partial, f.Message)
	l.partialSize -= m.size + len(m.parts)*frameCost
	m.Body = bytes.Join(m.parts, nil)
	deliver(m.Message)
	return true
}

// acknowledged removes the frames that have come.
func (l *Link) acknowledged(now time.Time, upTo uint64) {
	n := 0
	for n < len(l.unacked) && l.unacked[n].Seq <= upTo {
		l.flying -= l.unacked[n].cost()
		l.unacked[n] = nil
		n++
	}
	if n == 0 {
		return
	}
	l.sentAt, l.retry = now, firstRetry
	if l.unacked = l.unacked[n:]; len(l.unacked) == 0 {
		l.unacked = nil
	}
}

// Idle reports whether the peer has acknowledged all messages.
func (l *Link) Idle() bool { return l.queue.Len() == 0 && len(l.unacked) == 0 }

// Expects reports whether some parts of a message with an id have come, and not all.
func (l *Link) Expects(id uint64) bool {
	for _, m := range l.partial {
		if m.ID == id {
			return true
		}
	}
	return false
}

// crowded is how many bytes may wait before messages that can be missed are dropped.
const crowded = 1 << 20

// Crowded reports whether so much waits that messages that can be missed should be dropped.
func (l *Link) Crowded() bool { return l.queued > crowded }
