package node

import (
	"encoding/json"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/wire"
)

// envelope is what goes with a message to another member.
type envelope struct {
	History history `json:"history,omitzero"` // of a command
	Ref     string  `json:"ref,omitempty"`    // of the actor that the message is for
	Sender  string  `json:"sender,omitempty"` // of a question or a line: the reference of who gets the answer
}

// encode encodes a message to another member.
func encode(with envelope, v any) (m link.Message, err error) {
	if m.Type, m.Body, err = wire.Encode(v); err == nil && with != (envelope{}) {
		m.Head, err = json.Marshal(with)
	}
	return m, err
}

// encoded is an exchange, a reply, a question or an answer, for the part of the node that sends it.
type encoded struct {
	part     interface{ onEncoded(encoded) }
	exchange *exchange
	served   *served
	asker    *actor.PID // that waits for the answer to a question
	to       *peer
	with     envelope
	message  link.Message
	err      error
}

// encode encodes a command, a reply, a question or an answer, and gives it to its part. What is not known
// to be small is encoded in another goroutine, which then sends it to the node. Only other commands keep their order.
func (b *base) encode(v any, done encoded) {
	if wire.IsSmall(v) {
		done.message, done.err = encode(done.with, v)
		done.part.onEncoded(done)
		return
	}
	later := done // so that only a large one is on the heap
	b.outside.work(func() {
		later.message, later.err = encode(later.with, v)
		b.do(func() { later.part.onEncoded(later) })
	})
}

// send sends what was encoded for a member, unless that is lost.
func (e *encoded) send(id uint64) error {
	if e.err != nil || !e.to.alive() {
		return e.err
	}
	e.message.ID = id
	_, err := e.to.link.Send(e.message, true)
	return err
}
