package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

// plain is a handler whose requests return the method, unless they wait for their end.
type plain struct{ waits chan struct{} } // has an element for each that waits

func (p *plain) Handle(r *Request) (any, error) {
	r.Pass()
	if r.Method == "wait" {
		p.waits <- struct{}{}
		<-r.Context.Done()
	}
	return map[string]string{"method": r.Method}, nil
}

func (*plain) Notified(*Message) {}

func (*plain) Left(bool) {}

func acceptPlain(*Client) Handler { return &plain{make(chan struct{}, 10)} }

// talk is a conversation over stdio.
type talk struct {
	*testing.T
	out io.Writer
	in  *bufio.Reader
}

func startTalk(t *testing.T) *talk {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		ServeStdio(ctx, in, out, acceptPlain)
	}()
	t.Cleanup(func() {
		cancel()
		toServer.Close()
		fromServer.Close()
		<-ended
	})
	return &talk{t, toServer, bufio.NewReader(fromServer)}
}

// says sends a line, and returns the next one that comes.
func (c *talk) says(line string) string {
	go io.WriteString(c.out, line+"\n")
	answer, err := c.in.ReadString('\n')
	require.NoError(c, err)
	return strings.TrimSpace(answer)
}

// whatIsNoMessage has lines, with the code of the error and the id that answers each.
var whatIsNoMessage = []struct {
	line, id string
	code     int64
}{
	{`{`, "null", -32700},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\xff\"}", "null", -32700},
	{`{"jsonrpc":"2.0","id":1,"method":"m"}}`, "null", -32700},
	{`[`, "null", -32700},
	{`[]`, "null", -32600},
	{`[1]`, "null", -32600},
	{`[null]`, "null", -32600},
	{`1`, "null", -32600},
	{`"text"`, "null", -32600},
	{`null`, "null", -32600},
	{`{}`, "null", -32600},
	{`{"jsonrpc":"2.0","id":1}`, "1", -32600},
	{`{"jsonrpc":"2.0","id":"a","params":{}}`, `"a"`, -32600},
	{`{"jsonrpc":"2.0","id":1,"method":2}`, "1", -32600},
	{`{"jsonrpc":"2.0","id":1,"method":null}`, "1", -32600},
	{`{"jsonrpc":"2.0","method":2}`, "null", -32600},
	{`{"jsonrpc":"1.0","id":1,"method":"m"}`, "1", -32600},
	{`{"id":1,"method":"m"}`, "1", -32600},
	{`{"jsonrpc":"2.0","id":null,"method":"m"}`, "null", -32600},
	{`{"jsonrpc":"2.0","id":1.5,"method":"m"}`, "null", -32600},
	{`{"jsonrpc":"2.0","id":{},"method":"m"}`, "null", -32600},
	{`{"jsonrpc":"2.0","id":[1],"method":"m"}`, "null", -32600},
	{`{"jsonrpc":"2.0","id":true,"method":"m"}`, "null", -32600},
	{`{"jsonrpc":"2.0","id":1,"method":"m","params":"text"}`, "1", -32602},
	{`{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}`, "1", -32602},
	{`{"jsonrpc":"2.0","id":1,"method":"ping","params":7}`, "1", -32602},
}

// What is no message of the protocol gets the error that JSON-RPC has for it, and ends nothing.
func TestWhatIsNoMessageGetsAnError(t *testing.T) {
	t.Run("stdio", func(t *testing.T) {
		c := startTalk(t)
		go io.WriteString(c.out, `{"jsonrpc":"2.0","id":"waits","method":"wait"}`+"\n")
		for _, no := range whatIsNoMessage {
			checkError(t, no.line, c.says(no.line), no.id, no.code)
		}
		checkError(t, "a long line", c.says(strings.Repeat("x", maxMessage+1)), "null", -32600)
		for line, want := range map[string]string{
			`{"jsonrpc":"2.0","id":9007199254740993,"method":"m","params":null}`: `{"jsonrpc":"2.0","id":9007199254740993,"result":{"method":"m"}}`,
			`{"jsonrpc":"2.0","id":-1.0,"method":"m"}` + "\r":                    `{"jsonrpc":"2.0","id":-1.0,"result":{"method":"m"}}`,
			" \n\n" + `{"jsonrpc":"2.0","id":"","method":"ping","later":1}`:      `{"jsonrpc":"2.0","id":"","result":{}}`,
		} {
			require.Equal(t, want, c.says(line), line)
		}
		// What asks for nothing gets no answer.
		for _, line := range []string{
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":"x"}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":77}}`,
			`{"jsonrpc":"2.0","method":"acme/later","params":[]}`, `{"jsonrpc":"2.0","id":"mcpactor-77","result":{}}`, `{"jsonrpc":"2.0","id":77,"error":"x"}`,
		} {
			require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, c.says(line+"\n"+`{"jsonrpc":"2.0","id":1,"method":"ping"}`), line)
		}
	})
	t.Run("HTTP", func(t *testing.T) {
		post, _ := startHTTP(t)
		for _, no := range whatIsNoMessage {
			status, body := post(no.line)
			if no.code != -32602 {
				require.Equal(t, http.StatusBadRequest, status, no.line)
			}
			checkError(t, no.line, body, no.id, no.code)
		}
		status, body := post(strings.Repeat("x", maxMessage+1))
		require.Equal(t, http.StatusRequestEntityTooLarge, status)
		checkError(t, "a long body", body, "null", -32600)
	})
}

// checkError checks that an answer is an error with a text.
func checkError(t *testing.T, line, answer, id string, code int64) {
	t.Helper()
	var m Message
	require.NoError(t, json.Unmarshal([]byte(answer), &m), "%s: %s", line, answer)
	require.NotNil(t, m.Error, "%s: %s", line, answer)
	require.Equal(t, code, m.Error.Code, line)
	require.Equal(t, id, string(m.ID), line)
	require.NotEmpty(t, m.Error.Message, line)
}

// startHTTP connects a client over HTTP. post sends a body, and returns the status and what came: of a stream, the data of the
// events, each on a line.
func startHTTP(t *testing.T) (post func(body string) (status int, said string), waits chan struct{}) {
	waits = make(chan struct{}, 10)
	e := &HTTP{Accept: func(*Client) Handler { return &plain{waits} }}
	t.Cleanup(e.Close)
	session := ""
	post = func(body string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(body))
		if session != "" {
			r.Header.Set(headerSession, session)
		}
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if session == "" {
			session = w.Header().Get(headerSession)
		}
		if w.Header().Get("Content-Type") != "text/event-stream" {
			return w.Code, w.Body.String()
		}
		var data []string
		for line := range strings.Lines(w.Body.String()) {
			if one, is := strings.CutPrefix(line, "data: "); is {
				data = append(data, strings.TrimSpace(one))
			}
		}
		return w.Code, strings.Join(data, "\n")
	}
	post(`{"jsonrpc":"2.0","id":0,"method":"initialize"}`)
	require.NotEmpty(t, session)
	return post, waits
}

// A batch, which protocol 2025-03-26 has, is taken in every revision. What is no message in it has an answer of its own.
func TestEachMessageOfABatchIsAnswered(t *testing.T) {
	const batch = `[{"jsonrpc":"2.0","id":1,"method":"a"},7,{"jsonrpc":"2.0","method":"b"},{"jsonrpc":"2.0","id":2,"method":"c"},{"jsonrpc":"2.0","id":3}]`
	want := []string{`"id":1,"result":{"method":"a"}`, `"id":null,"error":{"code":-32600`, `"id":2,"result":{"method":"c"}`, `"id":3,"error":{"code":-32600`}
	c, all := startTalk(t), ""
	all += c.says(batch)
	for range len(want) - 1 {
		line, err := c.in.ReadString('\n')
		require.NoError(t, err)
		all += line
	}
	post, _ := startHTTP(t)
	status, said := post(batch)
	require.Equal(t, http.StatusOK, status)
	for _, one := range want {
		require.Contains(t, all, one)
		require.Contains(t, said, one)
	}
	require.Equal(t, len(want), strings.Count(said, `{"jsonrpc"`))
	status, _ = post(`[{"jsonrpc":"2.0","method":"b"},{"jsonrpc":"2.0","id":3,"result":{}}]`)
	require.Equal(t, http.StatusAccepted, status)
	status, said = post(`[{"jsonrpc":"2.0","method":"b"},7]`)
	require.Equal(t, http.StatusBadRequest, status)
	checkError(t, "a notification and 7", said, "null", -32600)
	const old = `{"jsonrpc":"2.0","id":"mcpactor-ABCDEFGHIJ-1","result":{}}`
	status, said = post("[" + old + "," + old + "]")
	require.Equal(t, http.StatusBadRequest, status)
	checkError(t, "answers to old questions", said, "null", -32600)
	status, said = post("[" + old + `,{"jsonrpc":"2.0","id":4,"method":"d"}]`)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, said, "no longer open")
	require.Contains(t, said, `"id":4,"result":{"method":"d"}`)
}

// A request with the id of one that is running is refused, so that the answer to the first one is not taken for another. Its id can
// be used again when it has been answered.
func TestIDOfARunningRequestIsRefused(t *testing.T) {
	const waits, cancel = `{"jsonrpc":"2.0","id":5,"method":"wait"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`
	c := startTalk(t)
	checkError(t, "twice", c.says(waits+"\n"+`{"jsonrpc":"2.0","id":5,"method":"m"}`), "null", -32600)
	require.Equal(t, `{"jsonrpc":"2.0","id":"5","result":{"method":"m"}}`, c.says(cancel+"\n"+`{"jsonrpc":"2.0","id":"5","method":"m"}`))
	for range 1000 {
		require.Equal(t, `{"jsonrpc":"2.0","id":6,"result":{"method":"m"}}`, c.says(`{"jsonrpc":"2.0","id":6,"method":"m"}`))
	}

	post, waiting := startHTTP(t)
	done := make(chan string)
	go func() {
		_, said := post(waits)
		done <- said
	}()
	<-waiting
	status, said := post(`{"jsonrpc":"2.0","id":5,"method":"m"}`)
	require.Equal(t, http.StatusBadRequest, status)
	checkError(t, "twice", said, "null", -32600)
	status, said = post(`[{"jsonrpc":"2.0","id":7,"method":"m"},{"jsonrpc":"2.0","id":7,"method":"m"}]`)
	require.Equal(t, http.StatusBadRequest, status)
	checkError(t, "twice in a batch", said, "null", -32600)
	post(cancel)
	require.Empty(t, <-done, "what is cancelled gets no response")
	for range 1000 {
		_, said := post(`{"jsonrpc":"2.0","id":6,"method":"m"}`)
		require.Equal(t, `{"jsonrpc":"2.0","id":6,"result":{"method":"m"}}`, said)
	}
}

// Whatever a client sends, each line that comes back is a message.
func FuzzStdio(f *testing.F) {
	for _, no := range whatIsNoMessage {
		f.Add([]byte(no.line))
	}
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":"mcpactor-1","error":null}]` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled"}`))
	f.Fuzz(func(t *testing.T, sent []byte) {
		fromServer, out := io.Pipe()
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second) // it may be a request that waits
			defer cancel()
			ServeStdio(ctx, bytes.NewReader(sent), out, acceptPlain)
			out.Close() // what still runs gets no response
		}()
		for lines := bufio.NewScanner(fromServer); lines.Scan(); {
			var m Message
			require.NoError(t, json.Unmarshal(lines.Bytes(), &m))
			require.Equal(t, "2.0", m.Version)
			require.True(t, m.Result != nil || m.Error != nil)
		}
	})
}

// A message is read in place as package json reads it.
func FuzzMessagesAreReadAsPackageJSONReadsThem(f *testing.F) {
	for _, no := range whatIsNoMessage {
		f.Add([]byte(no.line))
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1,{"b":null}],"a":2,"\u0061":3}}`, `{"JSONRPC":"2.0","Id":1,"METHOD":"m","Params":null}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"a\u00e9\ud800\n","method":"b"}`, `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m","data":[1]}}`,
		`{"jsonrpc":"2.0","id":1,"result":null,"error":null}`, ` { "jsonrpc" : "2.0" , "id" : -1.0e3 , "result" : [ ] } `, `{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var fast, slow Message
		if !parse(data, &fast) {
			return
		}
		require.NoError(t, json.Unmarshal(data, &slow), "%s", data)
		require.Equal(t, slow, fast, "%s", data)
		want := Object{}
		if json.Unmarshal(data, &want) == nil && want != nil {
			require.Equal(t, want, ObjectOf(data), "%s", data)
		}
	})
}

// The result of a server may be on several lines, which are one for the client. All else of it stays as it is.
func TestMessageIsEncodedOnOneLine(t *testing.T) {
	for _, c := range []struct {
		m    Message
		want string
	}{
		{Message{ID: []byte("1"), Result: []byte("{ \"a\":\t\"<&>\u2028\\u00e9\", \"n\":1.0 }")}, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{ \"a\":\t\"<&>\u2028\\u00e9\", \"n\":1.0 }}"},
		{Message{ID: []byte(`"x"`), Result: []byte("{\r\n  \"a\": [1,\n 2]\n}")}, `{"jsonrpc":"2.0","id":"x","result":{"a":[1,2]}}`},
		{Message{Method: "a\"<\n", Params: []byte(`{}`)}, `{"jsonrpc":"2.0","method":"a\"<\n","params":{}}`},
		{Message{ID: []byte("null"), Error: &jsonrpc.Error{Code: -1, Message: "<no>"}}, `{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"<no>"}}`},
	} {
		line, err := c.m.encode()
		require.NoError(t, err)
		require.Equal(t, c.want, string(line))
	}
	_, err := (&Message{Error: &jsonrpc.Error{Data: []byte("{")}}).encode()
	require.Error(t, err)
}
