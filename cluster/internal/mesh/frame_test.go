package mesh

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/mem"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
)

func TestFramesCross(t *testing.T) {
	sent := frame{messages: []link.Message{
		{},
		{Type: "a", ID: 1, Body: []byte("{}")},
		{Type: strings.Repeat("x", 1000), ID: ^uint64(0)},
		{Type: "a", Body: bytes.Repeat([]byte("y"), inline+1)},
		{Type: "c", Head: []byte("head")},
		{Type: "b", ID: 7, Head: []byte("head"), Body: bytes.Repeat([]byte("z"), inline)},
	}}
	data, err := codec{}.Marshal(&sent)
	require.NoError(t, err)
	var got frame
	require.NoError(t, codec{}.Unmarshal(data, &got))
	require.Len(t, got.messages, len(sent.messages))
	for i, m := range got.messages {
		require.Equal(t, sent.messages[i].Type, m.Type)
		require.Equal(t, sent.messages[i].ID, m.ID)
		require.Equal(t, string(sent.messages[i].Head), string(m.Head))
		require.True(t, bytes.Equal(sent.messages[i].Body, m.Body))
	}
}

func FuzzFrame(f *testing.F) {
	f.Add([]byte("\x01a\x07\x00\x02{}"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got frame
		if (codec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, &got) != nil {
			return
		}
		again, err := codec{}.Marshal(&got)
		require.NoError(t, err)
		var twice frame
		require.NoError(t, codec{}.Unmarshal(again, &twice))
		require.Equal(t, len(got.messages), len(twice.messages))
	})
}

func TestMalformedFramesAreRefused(t *testing.T) {
	for _, data := range []string{"\x01", "\x01a", "\x01a\x07", "\x01a\x07\x02{", "\x01a\x07\x00\x02{", "\x80", "\x00\x00\x80"} {
		require.ErrorIs(t, codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, new(frame)), errFrame, "%q", data)
	}
	require.ErrorIs(t, codec{}.Unmarshal(nil, new(count)), errFrame)
	require.Error(t, codec{}.Unmarshal(nil, new(int)))
	_, err := codec{}.Marshal(1)
	require.Error(t, err)
}
