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
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
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
		"the line ends":                  {[]string{"data: " + own + "\n"}, nil, outbound.Pause},
		"the line ends with CR":          {[]string{"data: " + own + "\r"}, nil, outbound.Pause},
		"the line does not end":          {[]string{"data: " + own}, nil, outbound.Pause},
		"other fields follow":            {[]string{"data: " + own + "\nid: 7\nevent: message\n"}, nil, outbound.Pause},
		"after another event":            {[]string{": beat\n\n", "event: message\n", "data: " + own + "\n"}, nil, 2*wait + outbound.Pause},
		"on several lines":               {[]string{"data: {\ndata: " + own[1:] + "\n"}, nil, outbound.Pause},
		"on lines that come slowly":      {[]string{"data: " + own[:len(own)-2] + "\n", "data: }\n", "data: }\n", "\n"}, nil, 2*wait + outbound.Pause},
		"in pieces that come slowly":     {[]string{"data: " + own[:len(own)-2], "}", "}\n\n"}, nil, 2 * wait},
		"the stream is cut":              {[]string{"data: " + own + "\n"}, io.ErrUnexpectedEOF, outbound.Pause},
		"the stream ends":                {[]string{"data: " + own[:9], own[9:] + "\n"}, io.EOF, wait + outbound.Pause},
		"the stream is cut within it":    {[]string{"data: " + own[:len(own)-2] + "\n"}, io.ErrUnexpectedEOF, -1},
		"after that of another":          {[]string{"data: " + other + "\n", "\n", "data: " + own + "\n"}, nil, 2*wait + outbound.Pause},
		"the name of another follows":    {[]string{"data: " + own + "\nevent: beat\n", "\n", "data: " + own + "\n"}, nil, 2*wait + outbound.Pause},
		"a bracket far before the end":   {[]string{"data: " + own + "\n" + ": " + strings.Repeat("x", 2000) + "\n", "\n"}, nil, wait},
		"right after a notification":     {[]string{"data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\nevent: message\ndata: " + own + "\n"}, nil, outbound.Pause},
		"an error":                       {[]string{"data: " + bridgetest.Failure(id, "-1", "no") + "\n"}, nil, outbound.Pause},
		"an error without an id":         {[]string{"data: " + bridgetest.Failure("null", "-1", "no") + "\n"}, nil, outbound.Pause},
		"a notification, and no more":    {[]string{"data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n"}, io.EOF, -1},
		"the response to another, alone": {[]string{"data: " + other + "\n"}, io.EOF, -1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, wanted := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					body, server := io.Pipe()
					go bridgetest.Feed(server, c.pieces, wait, c.end)
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

// Signs of life do not put the response off.
func TestResponseIsReadThoughCommentsFollowIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, server := io.Pipe()
		go func() {
			_, err := io.WriteString(server, "data: "+saying(fmt.Sprint(firstID+4), "a")+"\n")
			for err == nil {
				time.Sleep(outbound.Pause / 3)
				_, err = io.WriteString(server, ": beat\n")
			}
		}()
		began := time.Now()
		r, ex := answerOf(body, true, 0)
		_, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NotNil(t, ex.Result())
		require.Equal(t, outbound.Pause, time.Since(began))
		require.NoError(t, r.Close())
		time.Sleep(outbound.Pause)
	})
}

// The stream stays open, and what follows is not lost.
func TestMessageOnTheStandaloneStreamIsReadThoughItsEventHasNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standaloneOf(t, t.Context(), 0)
		body, server := io.Pipe()
		s.body = body
		note := func(method string) string { return `data: {"jsonrpc":"2.0","method":"` + method + `"}` + "\n" }
		go func() {
			io.WriteString(server, note("a"))
			time.Sleep(time.Second)
			io.WriteString(server, note("b")+"id: 7\n"+note("c"))
			time.Sleep(time.Second)
			io.WriteString(server, note("d")+"\n")
		}()
		began := time.Now()
		for _, want := range []struct {
			event string
			after time.Duration
		}{
			{note("a") + "\n", outbound.Pause},
			{note("b") + "id: 7\n\n" + note("c") + "\n", time.Second + outbound.Pause},
			{note("d") + "\n", 2 * time.Second},
		} {
			p := make([]byte, 4096)
			n, err := s.Read(p)
			require.NoError(t, err)
			require.Equal(t, want.event, string(p[:n]))
			require.Equal(t, want.after, time.Since(began))
		}
		require.Equal(t, "7", s.lastID)
		require.NoError(t, s.Close())
	})
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
