package node

import (
	"fmt"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
)

// scriptedLink is a [Link] over the network of a test. It has a lane for small messages and one for large ones. A
// connection that loses anything breaks, and another one resumes, as those of package mesh do.
type scriptedLink struct {
	over
	mu     *sync.Mutex // of all links of the world
	lanes  [2]*scriptedLane
	kept   bool // not dropped
	closed bool
}

// over is what a link needs of its world.
type over struct {
	from, to Address
	// carry carries something to the other member, or back, and calls one of two functions later.
	carry func(how way, arrive, lost func())
	// far returns the link of the other member to this one, or nil. ended says that there is another
	// incarnation at its address.
	far   func() (there *scriptedLink, ended bool)
	after func(d time.Duration, f func())
	tell  func(msg any)        // the node
	pause func() time.Duration // until a connection that has lost something is replaced
}

// way says how something is carried.
type way struct {
	back  bool
	large bool // it is slow, and has an order of its own
	label string
}

// scriptedLane is one direction of a lane, and how much of the other one has come.
type scriptedLane struct {
	*scriptedLink
	index int

	box      link.Outbox
	attempt  int    // of the connection, from 1
	writes   bool   // the other member has greeted
	written  uint64 // messages on this connection, and before
	flying   int    // bytes of these that the other member has not acknowledged
	received uint64 // from the other member
	accepted int    // the attempt of the other member whose messages are taken
}

var _ Link = (*scriptedLink)(nil)

const (
	// scriptedLarge is from how many bytes on a message goes on the lane of large ones.
	scriptedLarge = 128 << 10
	// flowWindow is how many bytes may be on their way.
	flowWindow = 256 << 10
)

// newScriptedLink returns a link that connects.
func newScriptedLink(mu *sync.Mutex, o over) *scriptedLink {
	l := &scriptedLink{over: o, mu: mu, kept: true}
	for i := range l.lanes {
		l.lanes[i] = &scriptedLane{scriptedLink: l, index: i}
	}
	for _, lane := range l.lanes {
		lane.connect()
	}
	return l
}

// laneOf returns the lane of a message.
func (l *scriptedLink) laneOf(m link.Message) *scriptedLane {
	if len(m.Body) >= scriptedLarge {
		return l.lanes[1]
	}
	return l.lanes[0]
}

// locked runs a function under the mutex.
func (l *scriptedLink) locked(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// connect says hello, and writes what waits once the other member has said what it has.
func (l *scriptedLane) connect() {
	if !l.kept {
		return
	}
	l.attempt++
	l.writes = false
	attempt := l.attempt
	lost := func() { l.lose(attempt) }
	l.carry(way{label: "hello"}, func() {
		l.locked(func() {
			there, ended := l.far()
			switch {
			case ended:
				l.carry(way{back: true, label: "has ended"}, func() { l.locked(func() { l.change(attempt, link.State{Ended: true}) }) }, lost)
				return
			case there == nil || !there.kept:
				l.carry(way{back: true, label: "refusal"}, func() { l.after(50*time.Millisecond, func() { l.breaks(attempt) }) }, lost)
				return
			}
			lane := there.lanes[l.index]
			lane.accepted = attempt
			got := lane.received
			l.carry(way{back: true, label: fmt.Sprint("greeting ", got)}, func() {
				l.locked(func() {
					l.resume(attempt, got)
					l.change(attempt, link.State{Connected: true})
				})
			}, lost)
		})
	}, lost)
}

// resume writes what the other member has not got.
func (l *scriptedLane) resume(attempt int, got uint64) {
	if l.attempt != attempt || !l.kept {
		return
	}
	if !l.box.Resume(got) {
		panic("the other member cannot have so many messages")
	}
	l.written, l.flying, l.writes = got, 0, true
	l.flush()
}

// change tells the node of the state of the connection. The caller has the mutex.
func (l *scriptedLane) change(attempt int, to link.State) {
	if l.attempt == attempt && l.index == 0 {
		l.tell(&Changed{Network: l.from.ID, Peer: l.to.ID, State: to})
	}
}

// lose replaces a connection that has lost something, after a while.
func (l *scriptedLane) lose(attempt int) { l.after(l.pause(), func() { l.breaks(attempt) }) }

// breaks ends a connection, if it is still the current one.
func (l *scriptedLane) breaks(attempt int) {
	l.locked(func() {
		if l.attempt == attempt && l.kept {
			l.change(attempt, link.State{})
			l.connect()
		}
	})
}

// breaks ends the connection.
func (l *scriptedLink) breaks() {
	var attempts [2]int
	l.locked(func() { attempts = [2]int{l.lanes[0].attempt, l.lanes[1].attempt} })
	for i, lane := range l.lanes {
		lane.breaks(attempts[i])
	}
}

// flush writes what may be written.
func (l *scriptedLane) flush() {
	for l.writes && l.flying < flowWindow {
		next := l.box.Take(nil, 0)
		if len(next) == 0 {
			return
		}
		l.write(next[0])
	}
}

// write writes a message.
func (l *scriptedLane) write(m link.Message) {
	attempt, at := l.attempt, l.written
	lost := func() { l.lose(attempt) }
	l.written++
	l.flying += len(m.Body) + 1<<10
	l.carry(way{large: l.index > 0, label: fmt.Sprintf("%s, id %d", m.Type, m.ID&^isReply)}, func() {
		l.locked(func() {
			far, ended := l.far()
			if ended { // its connection has ended with it
				lost()
				return
			}
			if far == nil || !far.kept || far.lanes[l.index].accepted != attempt || far.lanes[l.index].received != at {
				return // something before it was lost
			}
			far.lanes[l.index].received++
			far.tell(Decode(far.from.ID, l.from.ID, m))
			l.carry(way{back: true}, func() {
				l.locked(func() {
					if l.attempt == attempt && l.writes {
						l.flying -= len(m.Body) + 1<<10
						l.box.Acknowledged(at + 1)
						l.flush()
					}
				})
			}, lost)
		})
	}, lost)
}

func (l *scriptedLink) Send(m link.Message, urgent bool) (s *link.Sent, err error) {
	l.locked(func() {
		lane := l.laneOf(m)
		if s, err = lane.box.Add(m, urgent); err == nil && !l.kept {
			lane.box.Drop()
		}
		lane.flush()
	})
	return s, err
}

func (l *scriptedLink) Cast(m link.Message) {
	l.carry(way{label: m.Type}, func() {
		l.locked(func() {
			if far, ended := l.far(); far != nil && !ended && !far.closed {
				far.tell(Decode(far.from.ID, l.from.ID, m))
			}
		})
	}, func() {})
}

func (l *scriptedLink) Withdraw(s *link.Sent) (is bool) {
	l.locked(func() { is = l.laneOf(s.Message).box.Withdraw(s) })
	return is
}

func (l *scriptedLink) Crowded() (is bool) {
	l.locked(func() { is = l.lanes[0].box.Held()+l.lanes[1].box.Held() > 1<<20 })
	return is
}

func (l *scriptedLink) Idle() (is bool) {
	l.locked(func() { is = l.lanes[0].box.Idle() && l.lanes[1].box.Idle() })
	return is
}

func (l *scriptedLink) Drop() {
	l.locked(func() {
		far, _ := l.far()
		for i, lane := range l.lanes {
			if far != nil && l.kept && lane.accepted > 0 { // its stream ends: there may be another link to the same incarnation
				far.lanes[i].lose(lane.accepted)
			}
			lane.writes = false
			lane.box.Drop()
		}
		l.kept = false
	})
}

func (l *scriptedLink) Close() {
	l.Drop()
	l.locked(func() { l.closed = true })
}
