package outbound

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/bridgetest"
)

// The Content-Length is a hint: a transport that is not ours may change the body, and not the length.
func TestBodyIsReadToItsEndWhateverItsLengthIsSaidToBe(t *testing.T) {
	for _, size := range []int{0, 1, 511, 512, 513, firstPart - 1, firstPart, firstPart + 1, 100_000} {
		for _, known := range []int{-1, 0, size - 1, size, size + 1, 3 * size} {
			for _, limit := range []int{0, size - 1, size, size + 1, 1 << 20} {
				for _, read := range []func(io.Reader) io.Reader{iotest.HalfReader, iotest.DataErrReader} {
					body := strings.Repeat("x", size)
					data, err := ReadBounded(&http.Response{Body: io.NopCloser(read(strings.NewReader(body))), ContentLength: int64(max(-1, known))}, max(0, limit))
					if known > max(0, limit) || size > max(0, limit) {
						require.ErrorIs(t, err, ErrTooLarge)
						continue
					}
					require.NoError(t, err)
					require.Equal(t, body, string(data))
				}
			}
		}
	}
}

func TestBodyOfKnownLengthIsReadIntoOneBuffer(t *testing.T) {
	body := strings.NewReader(strings.Repeat("x", 1<<20))
	data, err := ReadBounded(&http.Response{Body: io.NopCloser(body), ContentLength: 1 << 20}, 1<<21)
	require.NoError(t, err)
	require.Len(t, data, 1<<20)
	require.LessOrEqual(t, cap(data), 1<<20+1<<14)
}

func TestLengthIsNotBelievedBeforeSomethingCame(t *testing.T) {
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			_, err := ReadBounded(&http.Response{Body: io.NopCloser(strings.NewReader("x")), ContentLength: 1 << 30}, 1<<31)
			require.NoError(b, err)
		}
	}).AllocedBytesPerOp()
	require.Less(t, allocated, int64(64<<10))
}

func TestBodyThatBreaksOffIsAnError(t *testing.T) {
	_, err := ReadBounded(&http.Response{Body: io.NopCloser(iotest.TimeoutReader(strings.NewReader(strings.Repeat("x", 2000)))), ContentLength: -1}, 1<<20)
	require.ErrorIs(t, err, iotest.ErrTimeout)
}

func TestContentTypeThatIsThereTwiceIsRead(t *testing.T) {
	for value, want := range map[string]string{
		"application/json":                                                 TypeJSON,
		"application/json, application/json":                               TypeJSON,
		"text/event-stream,text/event-stream":                              TypeSSE,
		"application/json; charset=utf-8, application/json; charset=utf-8": TypeJSON,
		"application/json, text/event-stream":                              "",
	} {
		resp := &http.Response{Header: http.Header{"Content-Type": {value}}}
		require.Equal(t, want, MediaType(resp), value)
		if want != "" {
			require.Equal(t, want, resp.Header.Get("Content-Type"))
		}
	}
}

func TestWholeJSONIsReadThoughItsBodyHasNoEnd(t *testing.T) {
	const wait = time.Second
	for name, c := range map[string]struct {
		pieces []string // a second passes after each
		end    error    // nil: the body stays open
		want   string
		took   time.Duration
	}{
		"whole":                  {[]string{`{"a":{}}`}, nil, `{"a":{}}`, Pause},
		"an array, with a blank": {[]string{"[1]\r\n"}, nil, "[1]\r\n", Pause},
		"in pieces":              {[]string{`{"a":{}`, "}"}, nil, `{"a":{}}`, wait + Pause},
		"it ends":                {[]string{`{"a":{}}`}, io.EOF, `{"a":{}}`, Pause},
		"it is cut":              {[]string{`{"a":{}`, "}"}, io.ErrUnexpectedEOF, `{"a":{}}`, wait + Pause},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body, server := io.Pipe()
				go bridgetest.Feed(server, c.pieces, wait, c.end)
				began := time.Now()
				data, err := ReadJSON(&http.Response{Body: body, ContentLength: -1}, 1<<10)
				require.NoError(t, err)
				require.Equal(t, c.want, string(data))
				require.Equal(t, c.took, time.Since(began))
				time.Sleep(wait)
			})
		})
	}
	for cut, want := range map[string]error{`{"a":{}`: io.ErrUnexpectedEOF, `{"a":{}}`: nil} {
		body := iotest.DataErrReader(io.MultiReader(strings.NewReader(cut), iotest.ErrReader(io.ErrUnexpectedEOF)))
		data, err := ReadJSON(&http.Response{Body: io.NopCloser(body), ContentLength: 100}, 1<<10)
		require.Equal(t, want, err)
		require.Equal(t, cut, string(data))
	}
	_, err := ReadJSON(&http.Response{Body: io.NopCloser(strings.NewReader("[1]")), ContentLength: -1}, 2)
	require.ErrorIs(t, err, ErrTooLarge)
}
