package rpc

import "github.com/modelcontextprotocol/go-sdk/jsonrpc"

// Large is what is known of the message in an event over the limit.
type Large struct {
	ID jsonrpc.ID // that the response answers, if it can be read
	// MayAnswer is true without an ID unless the event is known to be no response: a request, a notification, or an event
	// that has no message.
	MayAnswer bool
}

// oversized is an event over the limit. Only what routes its message is looked for. The zero value expects the first line.
type oversized struct {
	outline  outline
	size     int
	isInLine bool // its last line has not ended
	told     bool // tell has returned isTold
}

// add adds lines of the event, or a part of one. isTold is true once: when it is known whose message it is, or at the end of
// the event.
func (o *oversized) add(lines []byte) (about Large, isTold, isEnd bool) {
	isEnd = !o.isInLine && string(lines) == "\n"
	o.isInLine = lines[len(lines)-1] != '\n'
	o.size += len(lines)
	if grown := o.outline.add(lines); grown || isEnd {
		about, isTold = o.tell(isEnd)
	}
	return about, isTold, isEnd
}

// tell returns what is known of the message, once. isEnd says that nothing more will come.
func (o *oversized) tell(isEnd bool) (about Large, isTold bool) {
	if o.told {
		return about, false
	}
	event := ParseEvent(o.outline.data)
	head := topLevel(event.Data)
	mayBeMessage := len(event.Data) == 0 || event.Data[0] == '{'
	if !head.asks {
		about = Large{ID: head.id, MayAnswer: !head.id.IsValid() && event.IsMessage() && len(event.Data) > 0}
	}
	o.told = isEnd || head.asks || head.id.IsValid() || !mayBeMessage
	return about, o.told
}
