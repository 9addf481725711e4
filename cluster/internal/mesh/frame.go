package mesh

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
)

// frame is what a stream carries to the receiver: messages, one after the other.
//
//	message = type, id, head, body     type, head, body = length, bytes     id, length = a varint
type frame struct {
	messages []link.Message
	types    map[string]string // the types that the stream has carried; only for decoding
}

// count is what a stream carries back: how many messages the receiver has got, as a varint.
type count uint64

// codec encodes frames and counts for gRPC.
type codec struct{}

func init() { encoding.RegisterCodecV2(codec{}) }

// codecName is part of the content type of the streams.
const codecName = "mcpactor"

func (codec) Name() string { return codecName }

// inline is how large a body may be that is copied beside others.
const inline = 16 << 10

// Marshal encodes a frame or a count. A large body is not copied.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *frame:
		return v.marshal(), nil
	case count:
		return mem.BufferSlice{mem.SliceBuffer(binary.AppendUvarint(nil, uint64(v)))}, nil
	}
	return nil, fmt.Errorf("mesh: %T is neither a frame nor a count", v)
}

// marshal encodes a frame.
func (f *frame) marshal() (out mem.BufferSlice) {
	size := 0
	for _, m := range f.messages {
		size += 4*binary.MaxVarintLen64 + len(m.Type) + len(m.Head)
		if len(m.Body) <= inline {
			size += len(m.Body)
		}
	}
	buffers := new(struct { // one allocation for a frame of small messages
		list [1]mem.Buffer
		last mem.SliceBuffer
	})
	out = buffers.list[:0]
	head := make([]byte, 0, size)
	for _, m := range f.messages {
		head = binary.AppendUvarint(head, uint64(len(m.Type)))
		head = append(head, m.Type...)
		head = binary.AppendUvarint(head, m.ID)
		head = binary.AppendUvarint(head, uint64(len(m.Head)))
		head = append(head, m.Head...)
		head = binary.AppendUvarint(head, uint64(len(m.Body)))
		if len(m.Body) <= inline {
			head = append(head, m.Body...)
			continue
		}
		out = append(out, mem.SliceBuffer(head), mem.SliceBuffer(m.Body))
		head = head[len(head):]
	}
	buffers.last = head
	return append(out, &buffers.last)
}

// errFrame is the error for a frame or a count that is malformed.
var errFrame = errors.New("mesh: the frame is malformed")

// Unmarshal decodes a frame or a count.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *frame:
		return v.unmarshal(data.Materialize())
	case *count:
		n, size := binary.Uvarint(data.Materialize())
		if size <= 0 {
			return errFrame
		}
		*v = count(n)
		return nil
	}
	return fmt.Errorf("mesh: %T is neither a frame nor a count", v)
}

// maxTypes bounds the types that are remembered.
const maxTypes = 256

// unmarshal decodes a frame. The messages share the memory of data.
func (f *frame) unmarshal(data []byte) error {
	f.messages = f.messages[:0]
	number := func() uint64 {
		n, size := binary.Uvarint(data)
		if size <= 0 {
			data = nil
			return 1 // more than is left
		}
		data = data[size:]
		return n
	}
	bytes := func() (part []byte, ok bool) {
		n := number()
		if n > uint64(len(data)) {
			return nil, false
		}
		part, data = data[:n:n], data[n:]
		return part, true
	}
	for len(data) > 0 {
		typ, ok := bytes()
		if !ok || len(data) == 0 {
			return errFrame
		}
		m := link.Message{Type: f.intern(typ), ID: number()}
		var hasHead, hasBody bool
		m.Head, hasHead = bytes()
		if m.Body, hasBody = bytes(); !hasHead || !hasBody {
			return errFrame
		}
		f.messages = append(f.messages, m)
	}
	return nil
}

// intern returns a type as a string.
func (f *frame) intern(typ []byte) string {
	if known, ok := f.types[string(typ)]; ok {
		return known
	}
	if f.types == nil {
		f.types = map[string]string{}
	}
	text := string(typ)
	if len(f.types) < maxTypes && len(text) < maxTypes {
		f.types[text] = text
	}
	return text
}
