package rpc

import "github.com/modelcontextprotocol/go-sdk/jsonrpc"

// oversized is an event over the limit. Only the id of its message is looked for. The zero value expects the first line.
type oversized struct {
	outline  outline
	size     int
	isInLine bool // its last line has not ended
	told     bool // add has returned isTold
}

// add adds lines of the event, or a part of one. isTold is true once: when the id is known, or at the end of the event without
// one.
func (o *oversized) add(lines []byte) (id jsonrpc.ID, isTold, isEnd bool) {
	isEnd = !o.isInLine && string(lines) == "\n"
	o.isInLine = lines[len(lines)-1] != '\n'
	o.size += len(lines)
	if grown := o.outline.add(lines); !o.told && (grown || isEnd) {
		id, _ = topLevel(o.outline.data)
		o.told = isEnd || id.IsValid()
		isTold = o.told
	}
	return id, isTold, isEnd
}
