package repeats

import (
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/clock"
	"github.com/mcpactor/mcpactor/messages"
)

func said(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: map[string]any{"text": text}}
}

// world makes calls one second after the other.
type world struct {
	*testing.T
	row Row
	now time.Time
}

// call makes a call, and reports whether it was made.
func (w *world) call(digest, result string) bool {
	w.now = w.now.Add(time.Second)
	why, in := w.row.Begin(digest, 3, w.now)
	if why != "" {
		require.Positive(w, in)
		require.LessOrEqual(w, in, pause)
		return false
	}
	w.row.End(digest, said(result), w.now)
	return true
}

func TestIdenticalCallsStop(t *testing.T) {
	for name, c := range map[string]struct {
		between func(*world)
		again   bool
	}{
		"at once":               {func(*world) {}, false},
		"after another call":    {func(w *world) { require.True(t, w.call("other", "x")) }, true},
		"before a minute":       {func(w *world) { w.now = w.now.Add(pause - 3*time.Second) }, false},
		"after a minute":        {func(w *world) { w.now = w.now.Add(pause) }, true},
		"a late result":         {func(w *world) { w.row.End("a", said("other"), w.now) }, true},
		"of an older call":      {func(w *world) { w.row.End("other", said("other"), w.now) }, false},
		"an error":              {func(w *world) { w.row.End("a", &mcp.CallToolResult{IsError: true, Content: said("x").Content}, w.now) }, true},
		"other structured data": {func(w *world) { w.row.End("a", &mcp.CallToolResult{Content: said("x").Content}, w.now) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{T: t, now: time.Now()}
			for range 3 {
				require.True(t, w.call("a", "x"))
			}
			require.False(t, w.call("a", "x"))
			c.between(w)
			require.Equal(t, c.again, w.call("a", "x"))
		})
	}
}

func TestAnotherResultBeginsAnew(t *testing.T) {
	w := &world{T: t, now: time.Now()}
	for _, result := range []string{"x", "x", "y", "x", "x", "x"} {
		require.True(t, w.call("a", result))
	}
	require.False(t, w.call("a", "x"))
	why, in := w.row.Begin("a", 3, w.now)
	require.Equal(t, "this call has had the same result 3 times in a row, and may be made again at "+
		clock.Text(w.row.ended.Add(pause))+": do something else", why)
	require.Equal(t, 59*time.Second, in)
}

// An error of the server is a result that repeats itself as well.
func TestErrorsRepeatThemselves(t *testing.T) {
	w := &world{T: t, now: time.Now()}
	for _, text := range []string{"x", "y", "y", "y"} {
		why, _ := w.row.Begin("a", 3, w.now)
		require.Empty(t, why)
		w.row.Fail("a", &messages.Failure{Code: messages.CodeServerError, Detail: text}, w.now)
	}
	require.False(t, w.call("a", "x"))
}
