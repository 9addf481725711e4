package node

import (
	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/wire"
)

// encoded is the body of an exchange, of a reply, of a question or of an answer, for the part of the node that sends it.
type encoded struct {
	part     interface{ onEncoded(encoded) }
	exchange *exchange
	served   *served
	asks     uint64 // the number of a question
	answers  uint64 // likewise
	to       *peer
	history  history // of an exchange
	handler  string  // of a question
	typ      string
	body     []byte
	err      error
}

// encode encodes a command, a reply, a question or an answer, and gives it to its part. What is not known
// to be small is encoded in another goroutine, which then sends it to the node. Only other commands keep their order.
func (b *base) encode(v any, done encoded) {
	if wire.IsSmall(v) {
		done.encode(v)
		done.part.onEncoded(done)
		return
	}
	later := done // so that only a large one is on the heap
	b.work(func() any {
		later.encode(v)
		return &later
	})
}

// encode encodes a message, and what it is sent in.
func (e *encoded) encode(v any) {
	e.typ, e.body, e.err = wire.Encode(v, refs{})
	switch {
	case e.err != nil:
	case e.asks != 0:
		e.typ, e.body, e.err = wire.Encode(&ask{e.handler, e.typ, e.body}, refs{})
	case e.history != history{}:
		e.typ, e.body, e.err = wire.Encode(&resent{e.history, e.typ, e.body}, refs{})
	}
}

// send sends what was encoded for a member, unless that is lost.
func (e *encoded) send(id uint64) error {
	if e.err != nil || !e.to.alive() {
		return e.err
	}
	_, err := e.to.link.Send(link.Message{Type: e.typ, ID: id, Body: e.body}, true)
	return err
}
