package rpc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// ErrEndless is the error of an [Output] for a line of text that is too long.
var ErrEndless = errors.New("more than 1 MB of text without the end of a line")

// ErrOversized is the error of an [Output] for a value over the limit that may be the answer to any request: a batch, or a value
// that does not end.
var ErrOversized = errors.New("a batch over the limit of a message, or a message that does not end within 1 GiB after the limit")

const (
	// maxSkipped is the default of how much of a message is skipped after the limit, in bytes. What is skipped takes no
	// memory, but no other message can pass it.
	maxSkipped = 1 << 30
	// maxTextLine bounds a line that is no message.
	maxTextLine = 1 << 20
	// maxBlanks bounds how often a blank after an incomplete value is looked at.
	maxBlanks = 64
	// minRoom is the least size of [Output.Room].
	minRoom = 4 << 10
)

// Output separates the messages that a server writes to a pipe from other text. A message
// begins at the start of a line, or right after another one. It may take several lines, and a line may have several
// messages. All else is text. A request or notification within text is text as well, but a response at the end of a line
// of text may be a message. A value over the limit is skipped: only its id is looked for. It breaks off like any other value.
//
//	           ┌─────────────────── the value is a message ──────────────────┐
//	           ▼                                                             │
//	┌──────▶ between ── { or [ ──▶ inValue ── it is complete ─▶ or it is no message
//	│          │                    │    │                                   │
//	│          └─ other ──▶ inText ◀┼────┼───────────────────────────────────┘
//	│                         │     │    └─ it breaks off on its first line ─▶ inBroken
//	│                         │     └─ a later line does not continue it              │
//	└────── end of the line ──┴──────────────┴──────────────── end of the line ───────┘
//
// The result does not depend on how the output is cut into pieces, and each byte is looked at a few
// times at most. The zero value with a Limit is ready for use.
type Output struct {
	Limit int // of one message, in bytes
	Skips int // how much more of one message is skipped; 0 is 1 GiB

	came     []byte // the output that is not used yet; its bytes are never overwritten
	searched int    // the offset in came before which no line ends, but those that a value has passed
	part     part   // the part of the output in which came begins
	ended    bool   // nothing more will come
	cut      bool   // the output has ended within a value

	outline  outline // of a value over the limit
	told     bool    // its piece was found
	skipped  int     // how much of it was skipped, in bytes
	isInLine bool    // came does not begin at the start of a line
	err      error   // ErrOversized, or nil

	syntax syntax // of the value
	at     int    // how much of came the syntax has followed
	line   int    // the offset in came of the last line of the value
	looked int    // how many bytes were searched and followed in all, which a test bounds

	found []Piece
	taken int // of found
}

// part is a part of the output.
type part uint8

const (
	between  part = iota // at the start of a line, or after a message
	inValue              // in what may be a message
	inBroken             // in a line that began like one
	inText
	inOversized // in a value over the limit
)

// Kind is a kind of [Piece].
type Kind uint8

const (
	// Nothing says that more has to come first.
	Nothing Kind = iota
	// Message is a message.
	Message
	// Response is a response at the end of a line of text.
	Response
	// Torn is what begins like a message, and is none.
	Torn
	// TooLarge is a value over the limit, which may not have come to its end.
	TooLarge
	// Text is anything else.
	Text
)

// Piece is a piece of the output.
type Piece struct {
	Kind    Kind
	Data    []byte          // the bytes of the piece; nil for the kinds Message and TooLarge
	Message jsonrpc.Message // for the kinds Message and Response
	ID      jsonrpc.ID      // for the kinds Torn and TooLarge, if the id can be read
}

// Feed adds a copy of data.
func (o *Output) Feed(data []byte) {
	if cap(o.came)-len(o.came) < len(data) {
		o.came = slices.Grow(o.came, max(len(o.came), len(data)))
	}
	o.came = append(o.came, data...)
}

// Room returns a buffer into which more output can be read. Call [Output.Came] afterwards.
func (o *Output) Room() []byte {
	if cap(o.came)-len(o.came) < minRoom {
		o.came = slices.Grow(o.came, len(o.came))
	}
	return o.came[len(o.came):cap(o.came)]
}

// Came adds n bytes that were read into the [Output.Room].
func (o *Output) Came(n int) { o.came = o.came[:len(o.came)+n] }

// End notes that nothing more will come.
func (o *Output) End() { o.ended = true }

// IsCut reports whether the output has ended within a value.
func (o *Output) IsCut() bool { return o.cut }

// Pending returns how many bytes are not used yet.
func (o *Output) Pending() int { return len(o.came) }

// IsOpen reports whether the output has stopped between two lines of a value. Such a server is likely to have finished,
// unlike one that has stopped within a line.
func (o *Output) IsOpen() bool {
	if o.part == inOversized {
		return !o.isInLine && len(o.came) == 0
	}
	return o.part == inValue && o.line > 0 && o.line == len(o.came)
}

// GiveUp makes an open value text.
func (o *Output) GiveUp() {
	switch {
	case !o.IsOpen():
	case o.part == inOversized:
		o.skip(0, between)
	default:
		o.giveUp()
	}
}

// Next returns the next piece.
func (o *Output) Next() (p Piece, err error) {
	if o.taken == len(o.found) {
		o.found, o.taken = o.found[:0], 0
	}
	for more := true; len(o.found) == 0; {
		if !more || err != nil {
			return Piece{}, err
		}
		more, err = o.step()
	}
	p, o.found[o.taken] = o.found[o.taken], Piece{}
	o.taken++
	return p, nil
}

// step looks at the unused output. It returns false if more has to come first.
func (o *Output) step() (more bool, err error) {
	if o.err != nil {
		return false, o.err
	}
	switch o.part {
	case between:
		return o.begin(), nil
	case inValue:
		return o.value(), nil
	case inOversized:
		return o.oversized(), nil
	}
	end := o.lineEnd()
	switch {
	case end < 0 && len(o.came) > maxTextLine:
		return false, ErrEndless
	case end < 0:
		return false, nil
	}
	line, broken := o.take(end), o.part == inBroken
	o.part = between
	switch {
	case len(bytes.TrimSuffix(line, []byte("\n"))) > maxTextLine:
		return false, ErrEndless
	case !broken || !o.torn(line):
		o.text(line)
	}
	return true, nil
}

// lineEnd returns the end of the first line that came, or -1.
func (o *Output) lineEnd() int {
	if end := o.newline(); end > 0 || !o.ended {
		return end
	}
	return len(o.came)
}

// newline returns the offset after the first line feed that came and was not passed, or -1.
func (o *Output) newline() int {
	left := o.came[o.searched:]
	n := bytes.IndexByte(left, '\n')
	if n < 0 {
		o.searched, o.looked = len(o.came), o.looked+len(left)
		return -1
	}
	o.searched, o.looked = o.searched+n, o.looked+n
	return o.searched + 1
}

// own returns the first n unused bytes, which the caller may keep. It copies a few bytes of a large buffer, so that the
// buffer is not kept for them.
func (o *Output) own(n int) []byte {
	if 4*n+64 < cap(o.came) {
		return bytes.Clone(o.came[:n])
	}
	return o.came[:n:n]
}

// drop drops the first n unused bytes.
func (o *Output) drop(n int) {
	left := o.came[n:]
	switch {
	case len(left) == 0:
		left = nil
	case len(left) < n: // do not keep the memory of the dropped bytes
		left = bytes.Clone(left)
	}
	o.came, o.searched, o.at, o.line = left, max(0, o.searched-n), 0, 0
}

// take removes and returns the first n unused bytes, which the caller may keep.
func (o *Output) take(n int) []byte {
	data := o.own(n)
	o.drop(n)
	return data
}

// begin looks at the start of a line, or at the output after a message.
func (o *Output) begin() (more bool) {
	left := bytes.TrimLeft(o.came, blanks)
	for bytes.HasPrefix(left, []byte(byteOrderMark)) {
		left = bytes.TrimLeft(left[len(byteOrderMark):], blanks)
	}
	if n := len(o.came) - len(left); n > 0 {
		o.drop(n)
	}
	switch {
	case len(left) == 0, len(left) < len(byteOrderMark) && bytes.HasPrefix([]byte(byteOrderMark), left) && !o.ended:
		return false
	case left[0] == '{' || left[0] == '[':
		o.part, o.syntax = inValue, syntax{}
	default:
		o.part = inText
	}
	return true
}

// value looks at a value. The usual value is a message on a line of its own, which is decoded in place.
func (o *Output) value() (more bool) {
	if o.line == 0 {
		end := o.lineEnd()
		if end > 0 && o.came[0] == '{' && len(bytes.TrimRight(o.came[:end], blanks)) <= o.Limit && o.message(o.own(end)) {
			o.drop(end)
			o.part = between
			return true
		}
		if end < 0 && !o.mayBeComplete() {
			return false
		}
	}
	for o.at < len(o.came) {
		next, end := o.came[o.at:], o.newline()
		if end > 0 {
			next = o.came[o.at:end]
		}
		if o.line > 0 && end > 0 && end-o.line-1 <= o.Limit && isMessage(o.came[o.line:end]) {
			o.giveUp()
			return true
		}
		taken := o.syntax.follow(next)
		o.at, o.looked = o.at+taken, o.looked+taken
		switch o.syntax.state {
		case valueComplete:
			o.complete()
			return true
		case valueBroken:
			switch o.part = inBroken; {
			case o.isOversized(o.at):
				o.oversize()
			case o.line > 0:
				o.giveUp()
			}
			return true
		}
		if end > 0 {
			o.line, o.searched = o.at, o.at
		}
		if o.isOversized(o.at) {
			o.oversize()
			return true
		}
	}
	if o.ended {
		o.cut = true
		o.giveUp()
	}
	return o.ended
}

// isOversized reports whether the first n unused bytes, of a value, are over the limit. The last line of several counts by
// itself, because it may be a message that does not belong to the value.
func (o *Output) isOversized(n int) bool { return max(o.line, n-o.line) > o.Limit }

// oversize begins to skip a value, with what was followed of it.
func (o *Output) oversize() {
	o.outline, o.told, o.skipped = outline{}, false, 0
	if o.came[0] == '[' {
		o.err = ErrOversized
	}
	o.isInLine = o.syntax.state == valueBroken || o.came[o.at-1] != '\n'
	if o.syntax.state == valueComplete {
		o.skip(o.at, between)
		return
	}
	o.skip(o.at, inOversized)
}

// oversized looks at the next line of a value over the limit, or at a part of a long line.
func (o *Output) oversized() (more bool) {
	if len(o.came) == 0 {
		o.cut = o.ended
		return false
	}
	end := o.newline()
	line := o.came[:max(end, 0)]
	if end < 0 {
		line = o.came
	}
	if !o.isInLine && end > 0 && end-1 <= o.Limit && isMessage(line) {
		o.skip(0, between)
		return true
	}
	if o.syntax.state != valueBroken {
		o.at += o.syntax.follow(line[o.at:])
	}
	switch {
	case o.syntax.state == valueComplete:
		o.skip(o.at, between)
	case o.syntax.state == valueBroken && !o.isInLine && o.at <= o.Limit: // the line does not continue the value
		o.skip(0, between)
	case o.syntax.state == valueBroken && end > 0:
		o.skip(end, between)
	case end > 0:
		o.isInLine = false
		o.skip(end, inOversized)
	case o.isInLine, len(line) > o.Limit:
		o.isInLine = true
		o.skip(len(line), inOversized)
	case o.ended:
		o.cut = true
		o.skip(0, between)
	default:
		return false
	}
	return true
}

// skip drops the first n bytes of a value over the limit. Its piece is found once its id is known, or at its end.
func (o *Output) skip(n int, then part) {
	grown := o.outline.add(o.came[:n])
	o.part, o.looked, o.skipped = then, o.looked+n, o.skipped+n
	o.drop(n)
	if isEndless(o.skipped, o.Limit, o.Skips) {
		o.err = ErrOversized
	}
	if ends := then == between; !o.told && (grown || ends) {
		id := topLevel(o.outline.data).id
		if o.told = ends || id.IsValid(); o.told {
			o.add(Piece{Kind: TooLarge, ID: id})
		}
	}
}

// isEndless reports whether a message has more than skips bytes after the limit.
func isEndless(size, limit, skips int) bool { return size-limit > cmp.Or(skips, maxSkipped) }

// mayBeComplete reports whether an incomplete line is worth a look: it may end with a complete value, or with so many
// blanks that only the syntax knows, or it may be too long.
func (o *Output) mayBeComplete() bool {
	last := o.came[max(0, len(o.came)-maxBlanks):]
	o.looked += len(last)
	left := bytes.TrimRight(last, blanks)
	return len(left) == 0 || left[len(left)-1] == '}' || left[len(left)-1] == ']' ||
		len(o.came) > o.Limit || len(o.came) > maxTextLine && o.at == 0
}

// complete looks at a value that is complete.
func (o *Output) complete() {
	if o.at > o.Limit {
		o.oversize()
		return
	}
	o.part = between
	whole := o.take(o.at)
	if o.message(whole) || o.batch(whole) {
		return
	}
	o.part = inText
	if head := topLevel(whole); head.versioned {
		o.add(Piece{Kind: Torn, Data: whole, ID: head.id})
	} else {
		o.add(Piece{Kind: Text, Data: whole})
	}
}

// giveUp makes all lines of a value but the last one text, or a torn message.
func (o *Output) giveUp() {
	n := o.line
	if o.ended && n == 0 {
		n = len(o.came)
	}
	o.part = between
	if given := o.take(n); !o.torn(given) {
		o.add(Piece{Kind: Text, Data: given})
	}
}

func (o *Output) add(p Piece) { o.found = append(o.found, p) }

// message adds a message, if data is one.
func (o *Output) message(data []byte) bool {
	msg, ok := decodeWhole(data)
	if ok {
		o.add(Piece{Kind: Message, Message: msg})
	}
	return ok
}

// batch adds the messages of an array, if it contains only messages.
func (o *Output) batch(data []byte) bool {
	var parts []json.RawMessage
	if data[0] != '[' || !bytes.Contains(data, version) || json.Unmarshal(data, &parts) != nil || len(parts) == 0 {
		return false
	}
	before := len(o.found)
	for _, part := range parts {
		if !o.message(part) {
			o.found = o.found[:before]
			return false
		}
	}
	return true
}

// torn adds a torn message, if data looks like the beginning of a message.
func (o *Output) torn(data []byte) bool {
	inner, isObject := bytes.CutPrefix(data, []byte("{"))
	if !isObject || !bytes.HasPrefix(bytes.TrimLeft(inner, blanks), []byte(`"`)) || !bytes.Contains(data, version) {
		return false
	}
	o.add(Piece{Kind: Torn, Data: data, ID: topLevel(data).id})
	return true
}

// text adds a line of text, and the response at its end, if there is one.
func (o *Output) text(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	begin, resp := responseAtEnd(line, &o.looked)
	if resp == nil {
		o.add(Piece{Kind: Text, Data: line})
		return
	}
	o.add(Piece{Kind: Text, Data: line[:begin]})
	o.add(Piece{Kind: Response, Data: line[begin:], Message: resp})
}
