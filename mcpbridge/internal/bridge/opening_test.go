package bridge

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/messages"
)

// slowToInitialize is a server that opens a session after a while.
func slowToInitialize(after time.Duration) *script {
	s := newScript()
	s.answer("initialize", func(req *http.Request) (*http.Response, error) {
		select {
		case <-time.After(after):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
		return says(200, outbound.TypeJSON, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`,
			"Mcp-Session-Id: "+testSession)(req)
	})
	return s
}

// giveUp dials, gives up after a second, and returns the error.
func giveUp(t *testing.T, b *Bridge) *mcpbridge.Error {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	time.AfterFunc(time.Second, cancel)
	began := time.Now()
	_, err := b.Dial(ctx, dial.Request{Key: messages.Key{Server: "s", Scope: "a"}})
	require.Less(t, time.Since(began), 3*time.Second, "a dial returns soon after the end of its context")
	require.Error(t, err)
	return mcpbridge.AsError(err)
}

func bridgeTo(way http.RoundTripper) *Bridge {
	return New([]mcpbridge.Server{{Name: "s", URL: "http://localhost/mcp", ProtocolVersion: "2025-11-25", HTTPClient: &http.Client{Transport: way}}}, nil)
}

func (s *script) deletes() int {
	requests, _ := s.seen(http.MethodDelete)
	return len(requests)
}

// closeLeft closes what a dial has left, for at most five seconds.
func closeLeft(e *mcpbridge.Error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return dial.LeftBy(e).Close(ctx)
}

func TestSessionOfADialThatWasGivenUpIsEndedWhenItsServerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slowToInitialize(4 * time.Second)
		b := bridgeTo(s)
		defer b.Close()
		e := giveUp(t, b)
		require.NotNil(t, dial.LeftBy(e))
		require.Nil(t, dial.LeftBy(e).Resume())
		began := time.Now()
		require.NoError(t, closeLeft(e), "it waits for the answer")
		require.Less(t, time.Since(began), 3*time.Second)
		require.Equal(t, 1, s.deletes())
		require.NoError(t, closeLeft(e))
		require.Equal(t, 1, s.deletes())
	})
}

func TestSessionOfADialThatWasGivenUpIsEndedEvenIfNobodyClosesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slowToInitialize(20 * time.Second)
		b := bridgeTo(s)
		defer b.Close()
		e := giveUp(t, b)
		require.ErrorIs(t, closeLeft(e), dial.ErrOpening)
		time.Sleep(20 * time.Second)
		require.Equal(t, 1, s.deletes())
		require.NoError(t, closeLeft(e))
		require.Equal(t, 1, s.deletes())
	})
}

func TestDialThatWasGivenUpSaysThatItsServerMayHaveOpenedASession(t *testing.T) {
	for name, end := range map[string]func(*Bridge){
		"the connect timeout is over": func(*Bridge) { time.Sleep(30 * time.Second) },
		"the bridge is closed":        func(b *Bridge) { b.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := slowToInitialize(time.Minute)
				b := bridgeTo(s)
				e := giveUp(t, b)
				end(b)
				require.ErrorIs(t, closeLeft(e), dial.ErrUnanswered)
				require.Zero(t, s.deletes())
				b.Close()
			})
		})
	}
}

func TestDialThatTookTooLongLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bridgeTo(slowToInitialize(time.Minute))
		defer b.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := b.Dial(ctx, dial.Request{Key: messages.Key{Server: "s", Scope: "a"}})
		require.ErrorContains(t, err, "timed out while connecting")
		require.Nil(t, dial.LeftBy(err))
	})
}

func TestDialThatWasGivenUpLeavesNothingThatItCouldEnd(t *testing.T) {
	for name, way := range map[string]http.RoundTripper{"it was answered soon": slowToInitialize(1200 * time.Millisecond), "it was never sent": unreachable{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bridgeTo(way)
				defer b.Close()
				if e := giveUp(t, b); dial.LeftBy(e) != nil {
					require.NoError(t, closeLeft(e))
				}
			})
		})
	}
}

// unreachable makes no connection.
type unreachable struct{}

func (unreachable) RoundTrip(req *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(req.Context()).GetConn("localhost:80")
	<-req.Context().Done()
	return nil, req.Context().Err()
}
