package mcpbridge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// exchanged is what a server answers to a call: once, and to each attempt to
// resume the answer that broke off.
type exchanged struct {
	status int
	kind   string
	header string // "Name: value", beside the content type
	body   string
	cut    bool // the body ends with an error
	again  int
	rest   string
}

func (w exchanged) answer(req *http.Request) (*http.Response, error) {
	resp := answer(req, 100+int(uint(w.status-100)%900), w.kind, []byte(w.body))
	if name, value, ok := strings.Cut(w.header, ":"); ok {
		resp.Header.Set(name, strings.TrimSpace(value))
	}
	if w.cut {
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(w.body), iotest.ErrReader(io.ErrUnexpectedEOF)))
	}
	return resp, nil
}

func (w exchanged) resume(req *http.Request) (*http.Response, error) {
	if req.Header.Get(headerEvent) == "" {
		return answer(req, http.StatusMethodNotAllowed, "", nil), nil
	}
	return answer(req, 100+int(uint(w.again-100)%900), typeSSE, []byte(w.rest)), nil
}

// check makes a call that is answered so, and another one that is answered
// well. Time passes only where something waits for it.
func (w exchanged) check(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		c := s.attach(t)
		defer c.Close(context.Background())
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		s.answer("tools/call", w.answer)
		s.answer(http.MethodGet, w.resume)
		_, err := c.Do(ctx, toolCall())
		s.answer("tools/call", nil)
		e := AsError(err)
		t.Log(e, e)
		if e != nil {
			requirePresentable(t, err)
			require.True(t, e.Sent)
			require.NotEqual(t, NotSent, e.Class)
			require.NotEqual(t, Cancelled, e.Class)
			if e.Class == Deadline { // as the server wants it
				require.Contains(t, w.body+w.rest, "retry")
			}
		}
		if e == nil || e.Session == Alive {
			_, err = c.Do(ctx, toolCall())
			require.NoError(t, err, "after %v", e)
		}
		require.NoError(t, c.Close(ctx))
		require.LessOrEqual(t, len(s.downs), 1)
	})
}

// requirePresentable requires that an error may be shown to anybody.
func requirePresentable(t *testing.T, err error) {
	t.Helper()
	var e *Error
	require.True(t, errors.As(err, &e), "%T", err)
	require.NotContains(t, e.Detail, testSession)
	require.False(t, strings.ContainsFunc(e.Detail, unicode.IsControl), "%q", e.Detail)
	require.True(t, utf8.ValidString(e.Detail), "%q", e.Detail)
	require.LessOrEqual(t, len(e.Detail), maxDetail+150)
	require.GreaterOrEqual(t, e.RetryAfter, time.Duration(0))
}

func FuzzExchange(f *testing.F) {
	f.Add(200, typeJSON, "", `{"jsonrpc":"2.0","id":3,"result":{"content":[]}}`, false, 200, "")
	f.Fuzz(func(t *testing.T, status int, kind, header, body string, cut bool, again int, rest string) {
		exchanged{status, kind, header, body, cut, again, rest}.check(t)
	})
}
