package rpc

const (
	// maxOutline bounds the members of an outline, in bytes.
	maxOutline = 4 << 10
	// maxOutlineText bounds a string in it. A longer one is empty.
	maxOutlineText = 256
)

// outline is an object without what is in its members: enough to find the id of a message that is too large to be kept. The
// zero value expects the first byte.
type outline struct {
	data     []byte
	depth    int
	begin    int // the offset in data of the string
	inString bool
	isLong   bool // the string is too long
	escaped  bool
}

// add adds the next bytes of the object, and reports whether the outline has grown.
func (o *outline) add(data []byte) (grown bool) {
	for _, c := range data {
		outer := o.depth <= 1
		switch {
		case o.inString:
			if !o.isLong && len(o.data)-o.begin > maxOutlineText {
				o.data, o.isLong = o.data[:o.begin], true
			}
			o.inString = o.escaped || c != '"'
			o.escaped = !o.escaped && c == '\\'
		case c == '"':
			o.inString, o.isLong, o.begin = true, false, len(o.data)+1
		case c == '{' || c == '[':
			o.depth++
		case c == '}' || c == ']':
			o.depth--
		}
		if (outer || o.depth <= 1) && len(o.data) < maxOutline && (!o.inString || !o.isLong) {
			o.data, grown = append(o.data, c), true
		}
	}
	return grown
}
