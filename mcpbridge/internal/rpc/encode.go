package rpc

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Encode encodes a message of the SDK with the same result as [jsonrpc.EncodeMessage]. It copies the parameters of a
// call, which already are JSON.
func Encode(msg jsonrpc.Message) ([]byte, error) {
	if req, ok := msg.(*jsonrpc.Request); ok {
		if number, ok := req.ID.Raw().(int64); ok && isPlain(req.Method) {
			return encodeCall(number, req.Method, req.Params), nil
		}
	}
	return jsonrpc.EncodeMessage(msg)
}

// EncodeParams encodes parameters as the SDK does.
func EncodeParams(params any) ([]byte, error) {
	e := encoders.Get().(*encoder)
	e.data.Reset()
	if err := e.json.Encode(params); err != nil {
		return nil, err
	}
	data := bytes.Clone(bytes.TrimRight(e.data.Bytes(), "\n"))
	if e.data.Cap() <= keptBuffer {
		encoders.Put(e) // but not after a MarshalJSON has failed or panicked
	}
	return data, nil
}

// keptBuffer is the size of the largest buffer that is kept for the next parameters.
const keptBuffer = 64 << 10

// encoder is a JSON encoder with its buffer.
type encoder struct {
	data bytes.Buffer
	json *json.Encoder
}

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.json = json.NewEncoder(&e.data)
	e.json.SetEscapeHTML(false)
	return e
}}

// encodeCall encodes a call with a plain method. params are JSON, or nil. The result has capacity for a newline.
func encodeCall(id int64, method string, params []byte) []byte {
	const rest = `,"method":"` + `","params":` + "}\n"
	data := make([]byte, 0, len(callHead)+idDigits+len(method)+len(params)+len(rest))
	data = strconv.AppendInt(append(data, callHead...), id, 10)
	data = append(append(append(data, `,"method":"`...), method...), '"')
	if len(params) > 0 {
		data = append(append(data, `,"params":`...), params...)
	}
	return append(data, '}')
}

// isPlain reports whether a text needs no escape in JSON.
func isPlain[T string | []byte](text T) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '\\' || c == '"' {
			return false
		}
	}
	return true
}
