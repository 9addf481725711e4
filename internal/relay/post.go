package relay

import (
	"context"
	"runtime/debug"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// Post sends the messages of our actors to processes of others. A send never blocks, and runs
// no code of others in the goroutine of the sender:
//
//   - An actor with a mailbox that only queues gets its messages at once.
//   - Any other process gets them, in their order, in another goroutine: the code of a future, a
//     remote endpoint, a mailbox with middleware, a bounded mailbox, a dispatcher that does not
//     start goroutines, or a process of the user.
//   - What is sent to a PID without a process is a dead letter. It is published as events are:
//     Proto.Actor would call all handlers of the EventStream before Send returns.
//
// A process that blocks holds one goroutine and at most maxQueued messages, which are its own: others get
// theirs. So there are no more goroutines than processes of others, whose number is theirs to bound. The PIDs
// of one address elsewhere count as one process, because one connection leads to them, and whoever
// sends from there can name any number of them. The methods may be called from any goroutine.
type Post struct {
	system *actor.ActorSystem
	events *Relay[any]
	bug    func(message, reason any, stack []byte)

	mu      sync.Mutex
	boxes   map[address]*box // of the processes that have messages or a goroutine
	dropped uint64
	idle    chan struct{} // closed when the last box is empty; nil while there is none
}

const (
	// maxQueued bounds the messages that wait for one process that blocks. Further ones are dropped.
	maxQueued = 1 << 16
	// maxLetters bounds the dead letters that wait for the handlers of the EventStream.
	maxLetters = 1 << 10
)

// address identifies a process of this system by its id, or all processes of another one by its host.
type address struct{ host, id string }

// box has the messages of one process, which a goroutine of its own hands over.
type box struct {
	at       address
	messages []letter
}

// letter is a message for a process. A system message is a Watch, an Unwatch or a Terminated.
type letter struct {
	to      *actor.PID
	message any
	system  bool
}

// NewPost returns a Post. Dead letters go to events, whose handler publishes them. bug is called if
// a process panics.
func NewPost(system *actor.ActorSystem, events *Relay[any], bug func(message, reason any, stack []byte)) *Post {
	return &Post{system: system, events: events, bug: bug, boxes: map[address]*box{}}
}

// Send sends a message, which may be an envelope. With a nil PID it does nothing.
func (p *Post) Send(to *actor.PID, message any) {
	if to != nil {
		p.send(letter{to: to, message: message})
	}
}

// Request sends a message with a sender.
func (p *Post) Request(to *actor.PID, message any, sender *actor.PID) {
	p.Send(to, &actor.MessageEnvelope{Message: message, Sender: sender})
}

// Watch has a watcher told when a process ends, which may be at once. It reports false if the
// process is known to have ended.
func (p *Post) Watch(who, watcher *actor.PID) (there bool) {
	if p.Gone(who) {
		p.Terminated(watcher, who, actor.TerminatedReason_NotFound)
		return false
	}
	p.send(letter{who, &actor.Watch{Watcher: watcher}, true})
	return true
}

// Unwatch ends a Watch.
func (p *Post) Unwatch(who, watcher *actor.PID) {
	if !p.Gone(who) {
		p.send(letter{who, &actor.Unwatch{Watcher: watcher}, true})
	}
}

// Terminated tells a watcher that a process has ended.
func (p *Post) Terminated(watcher, who *actor.PID, why actor.TerminatedReason) {
	p.send(letter{watcher, &actor.Terminated{Who: who, Why: why}, true})
}

// Gone reports whether a process is known to have ended. Of a process elsewhere that is not known.
func (p *Post) Gone(pid *actor.PID) bool {
	process, there := p.lookUp(pid)
	return process == nil && !there
}

// Dropped returns how many messages have been dropped.
func (p *Post) Dropped() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

// Flush waits until no process has messages that wait, or ctx ends. It reports whether none has.
func (p *Post) Flush(ctx context.Context) bool {
	p.mu.Lock()
	idle := p.idle
	p.mu.Unlock()
	if idle == nil {
		return true
	}
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}

// lookUp returns the process of a PID, or nil. there is true if there may be one. A process
// elsewhere is not looked up: the user may have registered the function that does so.
func (p *Post) lookUp(pid *actor.PID) (process actor.Process, there bool) {
	registry := p.system.ProcessRegistry
	if !p.isLocal(pid) {
		return nil, len(registry.RemoteHandlers) > 0
	}
	if process, there = registry.GetLocal(pid.Id); !there {
		return nil, false
	}
	return process, true
}

// isLocal reports whether a PID is one of this system.
func (p *Post) isLocal(pid *actor.PID) bool {
	return pid.Address == p.system.ProcessRegistry.Address || pid.Address == "nonhost"
}

// send hands a message to its process, or to the goroutine that does so.
func (p *Post) send(l letter) {
	process, there := p.lookUp(l.to)
	switch {
	case !there:
		p.undeliverable(l)
	case process != nil && isPrompt(process):
		l.hand(process)
	default:
		p.queue(l)
	}
}

// hand hands a message to a process.
func (l letter) hand(process actor.Process) {
	if l.system {
		process.SendSystemMessage(l.to, l.message)
		return
	}
	process.SendUserMessage(l.to, l.message)
}

// undeliverable publishes a dead letter, or tells a watcher that the process has ended.
func (p *Post) undeliverable(l letter) {
	if l.system {
		if watch, is := l.message.(*actor.Watch); is {
			p.Terminated(watch.Watcher, l.to, actor.TerminatedReason_NotFound)
		}
		return
	}
	_, message, sender := actor.UnwrapEnvelope(l.message)
	p.events.PutOf(p, maxLetters, &actor.DeadLetterEvent{PID: l.to, Message: message, Sender: sender})
}

// queue puts a message into the box of its process, or drops it if the box is full.
func (p *Post) queue(l letter) {
	at := address{id: l.to.Id}
	if !p.isLocal(l.to) {
		at = address{host: l.to.Address}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.boxes[at]
	if b == nil {
		b = &box{at: at}
		p.boxes[at] = b
		if p.idle == nil {
			p.idle = make(chan struct{})
		}
		go p.empty(b)
	}
	if len(b.messages) == maxQueued {
		p.dropped++
		return
	}
	b.messages = append(b.messages, l)
}

// empty hands over the messages of a box. It starts again in a new goroutine if the process has
// ended this one.
func (p *Post) empty(b *box) {
	over := false
	defer func() {
		if !over {
			go p.empty(b)
		}
	}()
	for l, more := p.next(b); more; l, more = p.next(b) {
		p.deliver(l)
	}
	over = true
}

// next takes the first message of a box. An empty box is forgotten.
func (p *Post) next(b *box) (first letter, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(b.messages) == 0 {
		delete(p.boxes, b.at)
		if len(p.boxes) == 0 {
			close(p.idle)
			p.idle = nil
		}
		return letter{}, false
	}
	first = b.messages[0]
	b.messages[0] = letter{}
	b.messages = b.messages[1:]
	return first, true
}

// deliver hands a message to its process. It may block.
func (p *Post) deliver(l letter) {
	defer func() {
		if reason := recover(); reason != nil && p.bug != nil {
			p.bug(l.message, reason, debug.Stack())
		}
	}()
	if process, there := p.system.ProcessRegistry.Get(l.to); there {
		l.hand(process)
		return
	}
	p.undeliverable(l)
}
