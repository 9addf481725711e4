package streamable

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/bridgetest"
)

// The event of a response ends with a blank line, which some servers do not write. A second passes after each piece of the
// stream.
func TestResponseIsReadThoughItsEventHasNoEnd(t *testing.T) {
	const wait = time.Second
	id := fmt.Sprint(firstID + 4)
	own, other := saying(id, "a"), saying(fmt.Sprint(firstID+5), "b")
	for name, c := range map[string]struct {
		pieces []string
		end    error         // of the stream, after the pieces; nil: it stays open
		took   time.Duration // until the response was read
	}{
		"with a blank line":              {[]string{"data: " + own + "\n\n"}, nil, 0},
		"the line ends":                  {[]string{"data: " + own + "\n"}, nil, silence},
		"the line ends with CR":          {[]string{"data: " + own + "\r"}, nil, silence},
		"the line does not end":          {[]string{"data: " + own}, nil, silence},
		"other fields follow":            {[]string{"data: " + own + "\nid: 7\nevent: message\n"}, nil, silence},
		"after another event":            {[]string{": beat\n\n", "event: message\n", "data: " + own + "\n"}, nil, 2*wait + silence},
		"on several lines":               {[]string{"data: {\ndata: " + own[1:] + "\n"}, nil, silence},
		"on lines that come slowly":      {[]string{"data: " + own[:len(own)-2] + "\n", "data: }\n", "data: }\n", "\n"}, nil, 2*wait + silence},
		"in pieces that come slowly":     {[]string{"data: " + own[:len(own)-2], "}", "}\n\n"}, nil, 2 * wait},
		"the stream is cut":              {[]string{"data: " + own + "\n"}, io.ErrUnexpectedEOF, silence},
		"the stream ends":                {[]string{"data: " + own[:9], own[9:] + "\n"}, io.EOF, wait + silence},
		"the stream is cut within it":    {[]string{"data: " + own[:len(own)-2] + "\n"}, io.ErrUnexpectedEOF, -1},
		"after that of another":          {[]string{"data: " + other + "\n", "\n", "data: " + own + "\n"}, nil, 2*wait + silence},
		"the name of another follows":    {[]string{"data: " + own + "\nevent: beat\n", "\n", "data: " + own + "\n"}, nil, 2*wait + silence},
		"a bracket far before the end":   {[]string{"data: " + own + "\n" + ": " + strings.Repeat("x", 2000) + "\n", "\n"}, nil, wait},
		"an error":                       {[]string{"data: " + bridgetest.Failure(id, "-1", "no") + "\n"}, nil, silence},
		"an error without an id":         {[]string{"data: " + bridgetest.Failure("null", "-1", "no") + "\n"}, nil, silence},
		"a notification, and no more":    {[]string{"data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n"}, io.EOF, -1},
		"the response to another, alone": {[]string{"data: " + other + "\n"}, io.EOF, -1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, wanted := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					body, server := io.Pipe()
					go func() {
						for _, piece := range c.pieces {
							io.WriteString(server, piece)
							time.Sleep(wait)
						}
						if c.end != nil {
							server.CloseWithError(c.end)
						}
					}()
					began, took := time.Now(), time.Duration(-1)
					r, ex := answerOf(body, wanted, 0)
					for p := make([]byte, 4096); took < 0; {
						_, err := r.Read(p)
						if ex.IsAnswered() {
							took = time.Since(began)
						} else if err != nil {
							break
						}
					}
					require.Equal(t, c.took, took)
					server.Close()
					require.NoError(t, r.Close())
					time.Sleep(time.Duration(len(c.pieces)) * wait)
				})
			}
		})
	}
}

// net/http ends a Read of a body when the body is closed.
func TestStreamThatStaysOpenIsClosedAfterTheResponse(t *testing.T) {
	for _, isHTTP2 := range []bool{false, true} {
		t.Run(fmt.Sprint("HTTP/2=", isHTTP2), func(t *testing.T) {
			ended := make(chan struct{})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				fmt.Fprintf(w, "data: %s\n", saying(fmt.Sprint(firstID+4), "a"))
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}))
			server.EnableHTTP2 = isHTTP2
			server.StartTLS()
			defer server.Close()
			resp, err := server.Client().Get(server.URL)
			require.NoError(t, err)
			require.Equal(t, isHTTP2, resp.ProtoMajor == 2)
			r, ex := answerOf(resp.Body, true, 0)
			_, err = io.ReadAll(r)
			require.NoError(t, err)
			require.NotNil(t, ex.Result())
			require.NoError(t, r.Close())
			<-ended
		})
	}
}
