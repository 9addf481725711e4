package rpc

const (
	// maxOutline bounds the members of an outline, in bytes.
	maxOutline = 4 << 10
	// maxOutlineText bounds a string in it.
	maxOutlineText = 256
)

// outline is an object without what is in its members: enough to find the id of a message that is too large to be kept. The
// zero value expects the first byte.
type outline struct {
	data     []byte
	depth    int
	text     int // the length of the string so far
	inString bool
	escaped  bool
}

// add adds the next bytes of the object, and reports whether the outline has grown.
func (o *outline) add(data []byte) (grown bool) {
	before := len(o.data)
	for _, c := range data {
		outer := o.depth <= 1
		switch {
		case o.inString:
			o.text++
			o.inString = o.escaped || c != '"'
			o.escaped = !o.escaped && c == '\\'
		case c == '"':
			o.inString, o.text = true, 0
		case c == '{' || c == '[':
			o.depth++
		case c == '}' || c == ']':
			o.depth--
		}
		if (outer || o.depth <= 1) && len(o.data) < maxOutline && (o.text < maxOutlineText || !o.inString) {
			o.data = append(o.data, c)
		}
	}
	return len(o.data) > before
}
