package rpc

// oversized is an event over the limit. Only the id of its message is looked for.
type oversized struct {
	outline  outline
	size     int
	isInLine bool // its last line has not ended
	told     bool // another event has taken its place
}

// oversize begins to skip the incomplete event. It returns false if events are not skipped.
func (b *EventBuffer) oversize(limit int) bool {
	if b.TooLarge == nil {
		return false
	}
	before, last := b.came[b.whole:b.line], b.came[b.line:]
	b.large = &oversized{size: len(before)}
	b.large.outline.add(before)
	b.came, b.line = b.came[:b.whole], b.whole
	b.free()
	b.begun = true
	return b.skip(last, limit)
}

// skip skips a line of an event over the limit, or a part of one. Another event takes its place once the id is known, or at
// its end. skip returns false if the event does not end.
func (b *EventBuffer) skip(line []byte, limit int) bool {
	l := b.large
	isEnd := !l.isInLine && string(line) == "\n"
	l.isInLine = line[len(line)-1] != '\n'
	l.size += len(line)
	if grown := l.outline.add(line); !l.told && (grown || isEnd) {
		id, _ := topLevel(l.outline.data)
		if l.told = isEnd || id.IsValid(); l.told {
			b.came = append(b.came[:b.whole], b.TooLarge(id)...)
			b.whole, b.line = len(b.came), len(b.came)
		}
	}
	if isEnd {
		b.large = nil
	}
	return l.size/maxSkipped <= limit
}
