package rpc

import (
	"bytes"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// version is in each message, and rarely in other text.
var version = []byte(`"jsonrpc"`)

// decodeWhole decodes data that is one message.
func decodeWhole(data []byte) (jsonrpc.Message, bool) {
	if !bytes.Contains(data, version) {
		return nil, false
	}
	msg, err := Decode(data)
	return msg.Message, err == nil && !msg.HasRest
}

// isMessage reports whether a line is a message by itself.
func isMessage(line []byte) bool {
	line = bytes.Trim(line, blanks)
	if !bytes.HasPrefix(line, []byte("{")) || !bytes.HasSuffix(line, []byte("}")) {
		return false
	}
	_, ok := decodeWhole(line)
	return ok
}

// maxTried bounds how many beginnings of a response are tried in a line of text.
const maxTried = 32

// responseAtEnd returns the response at the end of a line of text, and where it begins, or nil. It adds the bytes that it
// looks at to looked.
func responseAtEnd(line []byte, looked *int) (begin int, resp *jsonrpc.Response) {
	text := bytes.TrimRight(line, blanks)
	if !bytes.HasSuffix(text, []byte("}")) || !bytes.Contains(text, version) {
		return 0, nil
	}
	for range maxTried {
		n := bytes.IndexByte(text[begin:], '{')
		if n < 0 {
			return 0, nil
		}
		begin += n
		var object syntax
		length := object.follow(text[begin:])
		*looked += length
		switch {
		case object.state != valueComplete:
			begin++
		case begin+length < len(text): // skip a value with all in it
			begin += length
		default:
			msg, _ := decodeWhole(text[begin:])
			resp, _ = msg.(*jsonrpc.Response)
			return begin, resp
		}
	}
	return 0, nil
}

// head is what routes a message.
type head struct {
	id        jsonrpc.ID
	versioned bool // it has the member jsonrpc
	asks      bool // it has a member of requests and notifications
}

// topLevel returns the head of an object that may be malformed. Its first id counts.
func topLevel(data []byte) (h head) {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			text := stringAt(data[i:])
			i += len(text) - 1
			after := bytes.TrimLeft(data[i+1:], blanks)
			if depth != 1 || !bytes.HasPrefix(after, []byte(":")) {
				continue
			}
			switch string(text) {
			case `"jsonrpc"`:
				h.versioned = true
			case `"method"`, `"params"`:
				h.asks = true
			case `"id"`:
				if !h.id.IsValid() {
					h.id = idAt(bytes.TrimLeft(after[1:], blanks))
				}
			}
		}
	}
	return h
}

// stringAt returns the string with which data begins, or all of data if the string has no end.
func stringAt(data []byte) []byte {
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return data[:i+1]
		}
	}
	return data
}

// idAt returns the string or the number with which data begins, if that is complete.
func idAt(data []byte) (id jsonrpc.ID) {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return ParseID(stringAt(data))
	}
	if n := bytes.IndexAny(data, ",}"+blanks); n >= 0 {
		return ParseID(data[:n])
	}
	return id
}
