package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// saying is a response with a text as its result.
func saying(id, text string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + text + `"}]}}`
}

// told makes a call, and returns the text that it is answered with.
func told(c dial.Conn) (string, *mcpbridge.Error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	result, err := c.Do(ctx, toolCall())
	if err != nil {
		return "", mcpbridge.AsError(err)
	}
	return result.(*messages.ToolResult).Result.Content[0].(*mcp.TextContent).Text, nil
}

// firstID is a number that no request of the SDK has.
const firstID = 1 << 30

func TestIDsOfAConnectionAreUsedByNoOther(t *testing.T) {
	s, all := newScript(), map[string]bool{}
	for range 2 {
		before := len(s.ids(""))
		c := s.attach(t)
		for range 3 {
			e, _ := do(c)
			require.Nil(t, e)
		}
		require.NoError(t, c.Close(t.Context()))
		ids := s.ids("")[before:]
		require.Len(t, ids, 4, "a ping and the calls")
		for _, id := range ids {
			number, err := strconv.ParseInt(id, 10, 64)
			require.NoError(t, err)
			require.Greater(t, number, int64(1<<30))
			require.Less(t, number, int64(1<<31))
			all[id] = true
		}
	}
	require.Len(t, all, 8)
	posts, _ := s.seen(http.MethodPost)
	for _, req := range posts {
		body, err := io.ReadAll(req.Body)
		require.NoError(t, err)
		require.Equal(t, rpc.BodyOf(req), body)
		require.EqualValues(t, len(body), req.ContentLength)
	}
}

func TestAttachedConnectionTakesNoAnswerButItsOwn(t *testing.T) {
	own, primed := saying("%s", "own"), "id: 1\nretry: 5\ndata:\n\n"
	// Ids that the connections before may have used: those of the SDK of this one.
	old := ""
	for i := range 9 {
		for _, id := range []string{fmt.Sprint(i), fmt.Sprintf(`"%d"`, i), fmt.Sprint(firstID + i)} {
			old += "data: " + saying(id, "old") + "\n\ndata: " + failure(id, "-32000", "old") + "\n\n"
		}
	}
	for name, c := range map[string]struct {
		call   answering
		resume answering
		want   *mcpbridge.Error
	}{
		"JSON":                     {call: says(200, outbound.TypeJSON, own)},
		"JSON, with blanks":        {call: says(200, outbound.TypeJSON, strings.NewReplacer(":", " : ", ",", "\n,\t").Replace(own))},
		"JSON, of another":         {call: says(200, outbound.TypeJSON, saying("4", "old")), want: &mcpbridge.Error{Class: mcpbridge.Protocol, Detail: "id of another request"}},
		"JSON, of a connection":    {call: says(200, outbound.TypeJSON, saying("4503599627370495", "old")), want: &mcpbridge.Error{Class: mcpbridge.Protocol, Detail: "id of another request"}},
		"JSON, error":              {call: says(200, outbound.TypeJSON, failure("%s", "-32602", "oops")), want: &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "oops"}},
		"JSON, error without id":   {call: says(200, outbound.TypeJSON, failure("null", "-32000", "oops")), want: &mcpbridge.Error{Class: mcpbridge.ServerError, Detail: "oops"}},
		"JSON, too large":          {call: then(nil, says(200, outbound.TypeJSON, saying("%s", strings.Repeat("x", 64<<10)))), want: &mcpbridge.Error{Class: mcpbridge.Protocol, Detail: "maxResult"}},
		"SSE":                      {call: says(200, outbound.TypeSSE, "data: "+own+"\n\n")},
		"SSE, stays open":          {call: stays("event: message\r\nid: 7\r\ndata: " + own + "\r\n\r\n")},
		"SSE, in lines":            {call: stays("data: " + strings.ReplaceAll(own, ",", "\ndata: ,") + "\n\n")},
		"SSE, no end of the event": {call: says(200, outbound.TypeSSE, "data: "+own)},
		"SSE, no blank line":       {call: stays("event: message\ndata: " + own + "\n")},
		"SSE, cut before it":       {call: breaks("data: " + own + "\n")},
		"SSE, resumed without it":  {call: breaks(primed), resume: stays("data: " + own + "\n")},
		"SSE, after old ones":      {call: stays(old + "data: " + own + "\n\n")},
		"SSE, old ones only":       {call: says(200, outbound.TypeSSE, old), want: &mcpbridge.Error{Session: mcpbridge.Broken}},
		"SSE, too large":           {call: stays("data: " + saying("%s", strings.Repeat("x", 64<<10)) + "\n\n"), want: &mcpbridge.Error{Class: mcpbridge.Protocol, Detail: "maxResult"}},
		"SSE, resumed":             {call: breaks(primed + "data: {"), resume: stays(old + "data: " + own + "\n\n")},
		"SSE, resumed after old":   {call: breaks("id: 1\nretry: 5\ndata: " + saying("4", "old") + "\n\n"), resume: stays("data: " + own + "\n\n")},
		"refused by a dispatcher":  {call: says(404, outbound.TypeJSON, failure("%s", "-32601", "oops")), want: &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "oops"}},
		"refused":                  {call: says(400, outbound.TypeJSON, failure("%s", "-32600", "oops")), want: &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "oops"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				conn := s.attach(t, func(srv *mcpbridge.Server, _ *mcpbridge.Resume) { srv.MaxResult = 32 << 10 })
				s.answer("tools/call", c.call, says(200, outbound.TypeJSON, own))
				s.answer(http.MethodGet, c.resume)
				text, e := told(conn)
				if c.want == nil {
					require.Nil(t, e)
					require.Equal(t, "own", text)
				} else {
					require.NotNil(t, e)
					require.Equal(t, c.want.Class, e.Class, "%v", e)
					require.Equal(t, c.want.Session, e.Session, "%v", e)
					require.Contains(t, e.Detail, c.want.Detail)
				}
				if gets, _ := s.seen(http.MethodGet); c.resume != nil {
					require.Equal(t, "1", gets[1].Header.Get(outbound.HeaderEvent))
				}
				if c.want == nil || c.want.Session == mcpbridge.Alive {
					text, e = told(conn)
					require.Nil(t, e)
					require.Equal(t, "own", text)
				}
				require.NoError(t, conn.Close(context.Background()))
			})
		})
	}
}

func TestLateAnswerOnTheStreamAnswersNoNewCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		in, out := io.Pipe()
		s.answer(http.MethodGet, func(req *http.Request) (*http.Response, error) {
			resp := outbound.Respond(req, 200, outbound.TypeSSE, nil)
			resp.Body = in
			return resp, nil
		}, stays(ping("b")))
		c := s.attach(t)
		release := make(chan struct{})
		s.answer("tools/call", func(req *http.Request) (*http.Response, error) {
			<-release
			return says(200, outbound.TypeJSON, saying("%s", "new"))(req)
		})
		answered := make(chan string)
		go func() {
			text, _ := told(c)
			answered <- text
		}()
		synctest.Wait()
		for i := range 9 {
			fmt.Fprintf(out, "id: a%d\ndata: %s\n\n", i, saying(fmt.Sprint(i), "old"))
		}
		io.WriteString(out, ping("a"))
		out.Close()
		time.Sleep(time.Minute)
		require.Empty(t, answered)
		close(release)
		require.Equal(t, "new", <-answered)
		require.Equal(t, "ab", s.pongs())
		gets, _ := s.seen(http.MethodGet)
		require.Equal(t, "a8", gets[1].Header.Get(outbound.HeaderEvent), "what is dropped is not asked for again")
		require.NoError(t, c.Close(context.Background()))
	})
}

func TestCancelledCallHasTheIDThatItWasSentWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		c := s.attach(t)
		s.answer("tools/call", stays(": it runs\n\n"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Do(ctx, toolCall())
		require.Equal(t, mcpbridge.Deadline, mcpbridge.AsError(err).Class)
		synctest.Wait()
		posts, _ := s.seen(http.MethodPost)
		var msg struct {
			Method string `json:"method"`
			Params struct {
				RequestID json.RawMessage `json:"requestId"`
			} `json:"params"`
		}
		require.NoError(t, json.Unmarshal(rpc.BodyOf(posts[len(posts)-1]), &msg))
		require.Equal(t, rpc.MethodCancelled, msg.Method)
		require.Equal(t, s.ids("tools/call"), []string{string(msg.Params.RequestID)})
		require.NoError(t, c.Close(context.Background()))
	})
}

func TestRequestsOfTheServerKeepTheirIDs(t *testing.T) {
	s := newScript()
	c := s.attach(t)
	var asked []string
	for _, id := range []string{"4", `"4"`, `4503599627370495`} {
		asked = append(asked, id)
		s.answer("tools/call", says(200, outbound.TypeSSE, `data: {"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`+"\n\ndata: "+saying("%s", "own")+"\n\n"))
		_, e := told(c)
		require.Nil(t, e)
	}
	slices.Sort(asked)
	require.Eventually(t, func() bool {
		var answered []string
		posts, _ := s.seen(http.MethodPost)
		for _, req := range posts {
			if msg := rpc.Parse(rpc.BodyOf(req)); msg.Method == "" {
				answered = append(answered, string(msg.ID))
			}
		}
		slices.Sort(answered) // the SDK answers side by side
		return slices.Equal(answered, asked)
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, c.Close(t.Context()))
}

func TestRepeatedRequestHasTheSameID(t *testing.T) {
	p, s := refilled("old", "new"), newScript()
	c := s.attach(t, with(p))
	s.answer("tools/call", unless("new", refused, says(200, outbound.TypeJSON, saying("%s", "own"))))
	text, e := told(c)
	require.Nil(t, e)
	require.Equal(t, "own", text)
	ids := s.ids("tools/call")
	require.Len(t, ids, 2)
	require.Equal(t, ids[0], ids[1])
	require.NoError(t, c.Close(t.Context()))
}

func TestProgressOfAnotherConnectionIsNotHeard(t *testing.T) {
	s, heard := newScript(), []float64{}
	c := s.attach(t)
	other := new(wire.Progress).Watch(nil)
	token := c.(*conn).Progress.Watch(func(p *mcp.ProgressNotificationParams, _ json.RawMessage) { heard = append(heard, p.Progress) })
	require.NotEqual(t, other, token)
	require.Regexp(t, `^mcpactor-[0-9a-f]{16}-1$`, token)
	events := ""
	for i, token := range []string{other, token, "mcpactor-1"} {
		events += fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"method\":%q,\"params\":{\"progressToken\":%q,\"progress\":%d}}\n\n", rpc.MethodProgress, token, i)
	}
	s.answer("tools/call", says(200, outbound.TypeSSE, events+"data: "+saying("%s", "own")+"\n\n"))
	_, e := told(c)
	require.Nil(t, e)
	require.Equal(t, []float64{1}, heard)
	require.NoError(t, c.Close(t.Context()))
}
