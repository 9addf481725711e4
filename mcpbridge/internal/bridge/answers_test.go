package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
)

const (
	done    = `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`
	private = "what-the-tool-said"
)

// comesTo makes one call that is answered so.
func comesTo(t *testing.T, check func(t *testing.T, s *script, e *mcpbridge.Error), call, get answering, change ...func(*mcpbridge.Server, *mcpbridge.Resume)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		c := s.attach(t, change...)
		defer c.Close(context.Background())
		s.answer("tools/call", call)
		s.answer(http.MethodGet, get)
		e, late := do(c)
		require.False(t, late, "it takes until the deadline")
		check(t, s, e)
	})
}

// The SDK is stricter than encoding/json about names and depth, and would end the
// session, with all other calls in flight; for a request it would take the rest.
func TestAnswerThatTheSDKReadsOtherwiseFailsItsCallAlone(t *testing.T) {
	for name, body := range map[string]string{
		"deeper than 1000":    `{"jsonrpc":"2.0","id":%s,"result":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`,
		"names in upper case": `{"jsonrpc":"2.0","ID":%s,"result":{"content":[]}}`,
		"empty method":        `{"jsonrpc":"2.0","id":%s,"method":"","result":{"content":[]}}`,
		"null method":         `{"jsonrpc":"2.0","id":%s,"method":null,"result":{"content":[]}}`,
	} {
		t.Run(name, httpAnswer{status: 200, kind: outbound.TypeJSON, body: body}.check)
	}
}

func TestChangedSessionIDIsIgnored(t *testing.T) {
	httpAnswer{status: 200, kind: outbound.TypeJSON, header: outbound.HeaderSession + ": another-id-0815", body: done}.check(t)
}

func TestChangedSessionIDIsInNoErrorText(t *testing.T) {
	comesTo(t, func(t *testing.T, _ *script, e *mcpbridge.Error) {
		if e != nil {
			require.NotContains(t, e.Detail, "another-id-0815")
		}
	}, says(200, outbound.TypeJSON, done, outbound.HeaderSession+": another-id-0815"), nil)
}

func TestEscapedSecretIsInNoErrorText(t *testing.T) {
	const id = "ab+/cd=="
	for _, escaped := range []string{`ab\u002B/cd==`, `ab+\/cd==`, `ab+/cd\u003d\u003d`} { // .NET, PHP, Go
		comesTo(t, func(t *testing.T, _ *script, e *mcpbridge.Error) {
			require.NotContains(t, e.Detail, id)
		}, says(400, outbound.TypeJSON, failure("%s", "-32000", "no: "+escaped)), nil, func(_ *mcpbridge.Server, r *mcpbridge.Resume) { r.SessionID = id })
	}
}

func TestResultIsInNoErrorText(t *testing.T) {
	for name, call := range map[string]answering{
		"JSON":           says(200, outbound.TypeJSON, `{"jsonrpc":"2.0","id":%s,"result":{"requestState":["`+private+`"]}}`),
		"SSE":            says(200, outbound.TypeSSE, `data: {"jsonrpc":"2.0","id":%s,"result":{"requestState":["`+private+`"]}}`+"\n\n"),
		"malformed line": says(200, outbound.TypeSSE, private+"\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			comesTo(t, func(t *testing.T, _ *script, e *mcpbridge.Error) { require.NotContains(t, e.Detail, private) }, call, nil)
		})
	}
}

func TestAnswerWithStatus202IsBounded(t *testing.T) {
	var read int
	comesTo(t, func(t *testing.T, _ *script, e *mcpbridge.Error) {
		require.Less(t, read, 1<<20)
	}, func(req *http.Request) (*http.Response, error) {
		resp := outbound.Respond(req, 202, outbound.TypeJSON, nil)
		endless := io.LimitReader(zeros{}, 64<<20)
		resp.Body = io.NopCloser(io.TeeReader(endless, writer(func(b []byte) (int, error) { read += len(b); return len(b), nil })))
		return resp, nil
	}, nil, func(srv *mcpbridge.Server, _ *mcpbridge.Resume) { srv.MaxResult = 4 << 10 })
}

func TestAnswerOfAnotherWithStatus202IsNotWaitedFor(t *testing.T) {
	for _, body := range []string{`{"jsonrpc":"2.0","id":0}`, `{"jsonrpc":"2.0","method":"ping","id":%s}`} {
		t.Run(body, httpAnswer{status: 202, kind: outbound.TypeJSON, body: body}.check)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

type writer func([]byte) (int, error)

func (f writer) Write(b []byte) (int, error) { return f(b) }

// The SDK's errors for these are those of a connection that has ended.
func TestErrorOverSSEIsNoLoss(t *testing.T) {
	for body, class := range map[string]mcpbridge.Class{
		failure("%s", "-32004", "shutting down"):  mcpbridge.ServerError,
		failure("%s", "-32003", "shutting down"):  mcpbridge.ServerError,
		`{"jsonrpc":"2.0","id":%s,"result":null}`: mcpbridge.Protocol,
		`{"jsonrpc":"2.0","id":%s}`:               mcpbridge.Protocol,
	} {
		t.Run(body, func(t *testing.T) {
			comesTo(t, func(t *testing.T, _ *script, e *mcpbridge.Error) {
				require.Equal(t, class, e.Class, "%v", e)
				require.Equal(t, mcpbridge.Alive, e.Session)
			}, says(200, outbound.TypeSSE, "data: "+body+"\n\n"), nil)
		})
	}
}

// The code is that of a sentinel of the SDK, ErrServerClosing.
func TestErrorThatReadsLikeAClosedConnectionIsTheServers(t *testing.T) {
	comesTo(t, func(t *testing.T, _ *script, e *mcpbridge.Error) {
		require.Equal(t, mcpbridge.ServerError, e.Class, "%v", e)
	}, says(200, outbound.TypeJSON, failure("%s", "-32004", "shutting down")), nil)
}

const primedEvent = "id: %d\nretry: 5\ndata:\n\n"

// endlessly breaks off, with another event each time.
func endlessly(after answering) answering {
	n := 0
	return func(req *http.Request) (*http.Response, error) {
		if n++; n > 3 {
			return after(req)
		}
		return breaks(fmt.Sprintf(primedEvent, n+1))(req)
	}
}

func TestLastAttemptToResumeWaitsForNothing(t *testing.T) {
	comesTo(t, func(t *testing.T, _ *script, e *mcpbridge.Error) {
		require.Equal(t, mcpbridge.Lost, e.Class)
	}, breaks(fmt.Sprintf(primedEvent, 1)), endlessly(stays(": beat\n\n")))
}

func TestLastAttemptToResumeKeepsTheResultOutOfTheErrorText(t *testing.T) {
	comesTo(t, func(t *testing.T, _ *script, e *mcpbridge.Error) {
		if e != nil {
			require.NotContains(t, e.Detail, private)
		}
	}, breaks(fmt.Sprintf(primedEvent, 1)),
		endlessly(says(200, outbound.TypeSSE, `data: {"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`+private+`"}]}}`+"\n\n")))
}

func TestResumedAnswerOverTheLimitFailsItsCallAlone(t *testing.T) {
	comesTo(t, func(t *testing.T, _ *script, e *mcpbridge.Error) {
		require.Equal(t, mcpbridge.Protocol, e.Class, "%v", e)
		require.Contains(t, e.Detail, "maxResult")
		require.Equal(t, mcpbridge.Alive, e.Session)
	}, breaks(fmt.Sprintf(primedEvent, 1)), stays("data: "+strings.Repeat("x", 128<<10)),
		func(srv *mcpbridge.Server, _ *mcpbridge.Resume) { srv.MaxResult = 4 << 10 })
}

// A Transport of the user may not know httptrace: what the server took may have
// run all the same.
func TestAcceptedCallIsNeverSaidNotToHaveBeenSent(t *testing.T) {
	comesTo(t, func(t *testing.T, _ *script, e *mcpbridge.Error) {
		require.Equal(t, mcpbridge.Lost, e.Class, "%v", e)
	}, breaks(": the tool runs\n\n"), nil, func(srv *mcpbridge.Server, _ *mcpbridge.Resume) {
		s := srv.HTTPClient.Transport
		srv.HTTPClient.Transport = answering(func(req *http.Request) (*http.Response, error) {
			return s.RoundTrip(req.WithContext(context.Background()))
		})
	})
}

func TestHalfAnEventIsAskedForAgain(t *testing.T) {
	onStream(t, func(t *testing.T, s *script, _ dial.Conn) {
		gets, _ := s.seen(http.MethodGet)
		require.Equal(t, "1", gets[1].Header.Get(outbound.HeaderEvent))
	}, breaks("id: 1\n"+ping("a")+"id: 2\ndata: {"), stays(""))
}

// What follows the 4096th byte of a line belongs to it.
func TestEndOfALongLineIsNoField(t *testing.T) {
	long := "id: 1\n\ndata: " + strings.Repeat("x", 4096-len("data: "))
	onStream(t, func(t *testing.T, s *script, _ dial.Conn) {
		gets, _ := s.seen(http.MethodGet)
		require.Equal(t, "1", gets[1].Header.Get(outbound.HeaderEvent))
	}, breaks(long+"id: forged\n"), stays(""))
}

func TestRetryOfTheServerIsKeptWhenItIsBusy(t *testing.T) {
	onStream(t, func(t *testing.T, s *script, _ dial.Conn) {
		_, times := s.seen(http.MethodGet)
		require.Equal(t, 3*time.Second, times[2].Sub(times[1]))
	}, breaks("retry: 3000\n\n"), says(503, "", ""), stays(""))
}

func TestRetryAfterDelaysOneAttempt(t *testing.T) {
	onStream(t, func(t *testing.T, s *script, _ dial.Conn) {
		_, times := s.seen(http.MethodGet)
		require.Equal(t, 20*time.Second, times[1].Sub(times[0]))
		require.Less(t, times[2].Sub(times[1]), 2*time.Second)
	}, says(503, "", "", "Retry-After: 20"), breaks(ping("a")), stays(""))
}

// No header can carry it, so that the stream could never be opened again.
func TestEventIDThatIsNoHeaderIsIgnored(t *testing.T) {
	for _, id := range []string{"a\x00b", "\x01"} {
		through := errors.New("the headers are good")
		wire := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, through }}
		onStream(t, func(t *testing.T, s *script, _ dial.Conn) {
			require.Equal(t, "a", s.pongs())
		}, breaks("id: "+id+"\n"+": x\n\n"), func(req *http.Request) (*http.Response, error) {
			if _, err := wire.RoundTrip(req); !errors.Is(err, through) {
				return nil, err
			}
			return stays(ping("a"))(req)
		})
	}
}
