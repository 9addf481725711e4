package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// The note stands in the text where a result has one text, so that it still has one.
func TestNoteDoesNotChangeTheShapeOfAResult(t *testing.T) {
	for raw, want := range map[string]string{
		`{"content":[{"type":"text","text":"a","x":1}],"_meta":{"y":2}}`:         `{"content":[{"type":"text","text":"a\n\nN","x":1}],"_meta":{"y":2}}`,
		`{"content":[{"type":"text","text":"{not JSON"}]}`:                       `{"content":[{"type":"text","text":"{not JSON\n\nN"}]}`,
		`{"content":[{"type":"text","text":"42"}]}`:                              `{"content":[{"type":"text","text":"42\n\nN"}]}`,
		`{"content":[{"type":"text","text":"{\"a\":1}"}],"isError":true}`:        `{"content":[{"type":"text","text":"{\"a\":1}\n\nN"}],"isError":true}`,
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:    `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"text","text":"N"}]}`,
		`{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}`:    `{"content":[{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"text","text":"N"}]}`,
		`{"content":[],"isError":true}`:                                          `{"content":[{"type":"text","text":"N"}],"isError":true}`,
		`{"content":[{"type":"text","text":" {\"a\":1}\n"}]}`:                    ``,
		`{"content":[{"type":"text","text":"[]"}],"structuredContent":{"a":[]}}`: ``,
		`{"content":[],"structuredContent":{"a":1}}`:                             ``,
		`{"structuredContent":{"a":1}}`:                                          ``,
	} {
		got := withNote(json.RawMessage(raw), "N")
		if want == "" {
			require.Nil(t, got, raw)
			continue
		}
		data, err := mcpserver.Encode(got)
		require.NoError(t, err)
		require.JSONEq(t, want, string(data))
	}
}

// A note is said if a call may have left state in a session that is gone, and in no other case.
func TestNoteIsSaidWhereStateMayBeGone(t *testing.T) {
	overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
		session := w.connect(nil)
		call := func(tool, want string) {
			t.Helper()
			text, isError := w.call(session, tool, nil)
			require.False(w, isError, text)
			require.Equal(w, want, text, tool)
		}
		restart := func() {
			require.NoError(w, e.Restart())
			time.Sleep(10 * time.Minute) // the backoff of the last one is over
		}
		_, err := session.ListTools(w.Context(), nil)
		require.NoError(w, err)
		call("count/ro", "1")
		restart()
		call("count/ro", "1")
		call("count", "2")
		restart()
		call("count/ro", "1"+stateGone)
		restart()
		call("count/ro", "1")
		call("count", "2")
		restart()
		call("count", "1"+stateGone)
		call("count", "2")

		// A call that may have run may have left state, too.
		restart()
		e.Inject("tools/call", faults.Times(1, faults.CutAnswer(0)))
		text, isError := w.call(session, "count", nil)
		require.True(w, isError, text)
		call("count/ro", "2"+stateGone)
	})
}

// jsonResult is a result that code may read.
const jsonResult = `{"content":[{"type":"text","text":"{\"n\":1}"}]}`

// jsonInNewSession answers calls with jsonResult, but for the first one, whose session the server has forgotten.
func jsonInNewSession() faults.Fault {
	var forgotten atomic.Bool
	return func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
		if !forgotten.Swap(true) {
			next.ServeHTTP(w, r.Request)
			return
		}
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, jsonResult)
	}
}

// Code that reads a result as JSON can still do so. A log message says at once what the next text says.
func TestNoteWaitsForAResultThatCanHaveIt(t *testing.T) {
	overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
		r := w.raw()
		r.open()
		call := func(id string) string {
			return string(r.ask(`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"count"}}`, id).Result)
		}
		require.Contains(w, call("1"), `"text":"1"`)
		require.NoError(w, e.Restart())
		restore := e.Inject("tools/call", jsonInNewSession())
		require.Equal(w, jsonResult, call("2"))
		said := r.await(func(m *mcpserver.Message) bool { return m.Method == "notifications/message" })
		require.Contains(w, string(said.Params), "has a new session")
		require.Equal(w, jsonResult, call("3"))
		restore()
		require.Contains(w, call("4"), "has a new session")
		require.NotContains(w, call("5"), "new session")
	})
}

// A session that clients share keeps nothing for one of them. A server without sessions keeps nothing for anybody.
func TestNothingIsGoneWhereNothingIsKept(t *testing.T) {
	for name, share := range map[string]string{"shared": "all", "without sessions": ""} {
		t.Run(name, func(t *testing.T) {
			overRestarts(t, share, name != "shared", func(r *restarts, e *faults.Server, _ *ClientStore) {
				one := r.visitor("one")
				one.says(2, "tools/call", counts)
				require.NoError(r, e.Restart())
				require.NotContains(r, one.says(3, "tools/call", counts), "Note")
				r.end()
				require.NoError(r, e.Restart())
				r.w = nil
				r.startAgain()
				require.NotContains(r, one.says(4, "tools/call", counts), "Note")
			})
		})
	}
}
