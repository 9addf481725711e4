package rpc

import (
	"bytes"

	"github.com/mcpactor/mcpactor/internal/wellformed"
)

const (
	blanks        = " \t\r\n"
	byteOrderMark = "\ufeff"
)

// syntax follows a JSON object or array byte by byte, so that it finds the end at once, and looks at no byte twice. It
// accepts more than JSON: a complete value may still be malformed. A line break within a string is an error. The
// zero value expects the first byte.
type syntax struct {
	state step
	open  []byte // the brackets that are open, at most wellformed.MaxDepth
	isKey bool   // the string is the name of a member
	rest  string // of a literal
}

// step says what comes next.
type step uint8

const (
	value         step = iota
	valueOrEnd         // of an array
	name               // of a member
	nameOrEnd          // of an object
	colon              // after a name
	commaOrEnd         // after a value
	inString           //
	inEscape           // after a backslash
	inNumber           //
	inLiteral          // true, false, null
	valueComplete      // the last bracket was closed
	valueBroken        // this is no JSON
)

// follow looks at the next bytes. It returns how many it took: all of them, unless the value is complete or broken
// before.
func (s *syntax) follow(data []byte) (taken int) {
	for i := 0; i < len(data); i++ {
		if s.state == inString {
			n := bytes.IndexAny(data[i:], "\"\\\n")
			if n < 0 {
				return len(data)
			}
			i += n
		}
		s.take(data[i])
		switch s.state {
		case valueComplete:
			return i + 1
		case valueBroken:
			return i
		}
	}
	return len(data)
}

// take looks at one byte.
func (s *syntax) take(c byte) {
	switch s.state {
	case inString:
		s.inString(c)
	case inEscape:
		s.expect(c != '\n', inString)
	case inLiteral:
		s.expect(c == s.rest[0], inLiteral)
		if s.rest = s.rest[1:]; s.rest == "" && s.state == inLiteral {
			s.state = commaOrEnd
		}
	case inNumber:
		if c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-' {
			return
		}
		s.state = commaOrEnd
		s.between(c)
	default:
		s.between(c)
	}
}

// inString looks at a byte that has a meaning in a string.
func (s *syntax) inString(c byte) {
	switch {
	case c == '\\':
		s.state = inEscape
	case c == '"' && s.isKey:
		s.state = colon
	case c == '"':
		s.state = commaOrEnd
	case c == '\n':
		s.state = valueBroken
	}
}

// between looks at a byte that is not part of a scalar.
func (s *syntax) between(c byte) {
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
	case s.state == value || s.state == valueOrEnd && c != ']':
		s.begin(c)
	case s.state == colon:
		s.expect(c == ':', value)
	case c == '"' && (s.state == name || s.state == nameOrEnd):
		s.state, s.isKey = inString, true
	case s.state == commaOrEnd && c == ',':
		s.state = value
		if s.open[len(s.open)-1] == '{' {
			s.state = name
		}
	case s.state == name: // an end would follow a comma
		s.state = valueBroken
	case c == '}' || c == ']':
		s.end(c - 2) // the bracket that opens
	default:
		s.state = valueBroken
	}
}

// begin looks at the first byte of a value.
func (s *syntax) begin(c byte) {
	switch {
	case c == '{' || c == '[':
		s.open = append(s.open, c)
		s.expect(len(s.open) <= wellformed.MaxDepth, valueOrEnd)
		if c == '{' && s.state == valueOrEnd {
			s.state = nameOrEnd
		}
	case c == '"':
		s.state, s.isKey = inString, false
	case c == '-' || c >= '0' && c <= '9':
		s.state = inNumber
	case c == 't':
		s.state, s.rest = inLiteral, "rue"
	case c == 'f':
		s.state, s.rest = inLiteral, "alse"
	case c == 'n':
		s.state, s.rest = inLiteral, "ull"
	default:
		s.state = valueBroken
	}
}

// end closes a bracket.
func (s *syntax) end(bracket byte) {
	last := len(s.open) - 1
	s.expect(s.open[last] == bracket, commaOrEnd)
	if s.open = s.open[:last]; last == 0 && s.state == commaOrEnd {
		s.state = valueComplete
	}
}

// expect sets the next state, which is valueBroken unless ok.
func (s *syntax) expect(ok bool, next step) {
	if s.state = next; !ok {
		s.state = valueBroken
	}
}
