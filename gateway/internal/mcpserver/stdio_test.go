package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// orderly is a handler that takes a second for initialize, and notes in which order it is called.
type orderly struct {
	*Client
	mu    sync.Mutex
	calls []string
}

func (o *orderly) note(call string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, call)
}

func (o *orderly) Handle(r *Request) (any, error) {
	r.Pass()
	if r.Method == "initialize" {
		time.Sleep(time.Second)
		o.note("initialize is over")
	}
	switch r.Method {
	case "ask":
		return o.Ask(r.Context, "question", nil, nil)
	case "slow":
		select {
		case <-time.After(time.Minute):
		case <-r.Context.Done():
			return nil, r.Context.Err()
		}
	}
	o.note(r.Method)
	return struct{}{}, nil
}

func (o *orderly) Notified(m *Message) { o.note(m.Method) }

func (o *orderly) Left(bool) { o.note("left") }

// pipe gives serve all lines in one write, after which the input ends, and returns the lines that come.
func pipe(lines ...string) (said []string, o *orderly) {
	var out bytes.Buffer
	ServeStdio(context.Background(), strings.NewReader(strings.Join(lines, "\n")), &out, func(c *Client) Handler {
		o = &orderly{Client: c}
		return o
	})
	return strings.Split(strings.TrimSpace(out.String()), "\n"), o
}

const (
	sentInitialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize"}`
	sentInitialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// What is piped into serve in one write is taken in order: nothing is before the response to initialize but a ping, and all
// requests are answered before serve ends.
func TestWhatIsPipedInOneWriteIsAnsweredInOrder(t *testing.T) {
	for _, first := range []string{sentInitialize, "\ufeff" + sentInitialize, " \ufeff " + sentInitialize + "\r"} {
		synctest.Test(t, func(t *testing.T) {
			said, o := pipe(first, sentInitialized, `{"jsonrpc":"2.0","id":2,"method":"slow"}`,
				`{"jsonrpc":"2.0","id":3,"method":"slow"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`,
				`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
			require.Equal(t, []string{`{"jsonrpc":"2.0","id":4,"result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"result":{}}`}, said)
			require.Equal(t, []string{"initialize is over", "initialize", "notifications/initialized", "slow", "left"}, o.calls)
		})
	}
}

// A client may send all that it has to say before it reads a response.
func TestClientIsHeardBeforeItReads(t *testing.T) {
	fromServer, out := io.Pipe()
	o, ended := &orderly{}, make(chan struct{})
	go func() {
		defer close(ended)
		lines := `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n" + sentInitialized
		ServeStdio(t.Context(), strings.NewReader(lines), out, func(*Client) Handler { return o })
	}()
	require.Eventually(t, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.calls) > 0
	}, 10*time.Second, time.Millisecond)
	fromServer.Close()
	<-ended
}

// A question to a client whose input has ended has no answer, and a request that takes too long has none either.
func TestEndOfTheInputEndsWhatCannotBeAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		said, _ := pipe(sentInitialize, `{"jsonrpc":"2.0","id":2,"method":"ask"}`)
		require.Contains(t, said[len(said)-1], "its input has ended")
		require.Less(t, time.Since(began), 2*time.Second)
	})
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ServeStdio(context.Background(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"wait"}`), io.Discard, acceptPlain)
		require.Equal(t, answerTime, time.Since(began))
	})
}

// A client that has died reads nothing: its requests are cancelled.
func TestClientThatHasDiedIsNoticed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it is not noticed there")
	}
	in, toServer := io.Pipe()
	fromServer, out, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	ended, handler := make(chan struct{}), acceptPlain(nil).(*plain)
	go func() {
		defer close(ended)
		ServeStdio(context.Background(), in, out, func(*Client) Handler { return handler })
	}()
	line, err := json.Marshal(&Message{Version: "2.0", ID: json.RawMessage("1"), Method: "wait"})
	require.NoError(t, err)
	_, err = toServer.Write(append(line, '\n'))
	require.NoError(t, err)
	<-handler.waits
	toServer.Close()
	select {
	case <-ended:
		require.Fail(t, "somebody may still read")
	case <-time.After(2 * lookEvery):
	}
	fromServer.Close()
	<-ended
}
