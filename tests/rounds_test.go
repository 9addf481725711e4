package tests

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// roundsVar makes this test binary a server of protocol 2026-07-28 over stdio, whose calls take three rounds. Its value is a folder
// and where the server dies once: after it has read or has answered a round.
const roundsVar = "MCPACTOR_TEST_ROUNDS"

func runRounds(value string) {
	folder, dies, _ := strings.Cut(value, " ")
	if _, err := os.Stat(filepath.Join(folder, "gone")); err == nil {
		os.Exit(1)
	}
	die := func(at string) {
		if file, err := os.OpenFile(filepath.Join(folder, "died"), os.O_CREATE|os.O_EXCL, 0o600); at == dies && err == nil {
			file.Close()
			os.Exit(1)
		} else if err == nil {
			file.Close()
			os.Remove(file.Name())
		}
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var req rawRequest
		if json.Unmarshal(lines.Bytes(), &req) != nil || req.ID == nil {
			continue
		}
		round, result := answerRound(req)
		if round > 0 {
			log, err := os.OpenFile(filepath.Join(folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			exitOnError(err)
			fmt.Fprintln(log, round)
			log.Close()
			die(fmt.Sprint(round, " read"))
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", req.ID, result)
		if round > 0 {
			die(fmt.Sprint(round, " answered"))
		}
	}
	os.Exit(0)
}

// answerRound returns the answer of such a server, and the round of a call, or 0.
func answerRound(req rawRequest) (round int, result string) {
	const asks = `{"resultType":"input_required","requestState":"<%d>","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"%d","requestedSchema":{"type":"object","properties":{}},"x":1}}}}`
	switch req.Method {
	case "server/discover":
		return 0, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}},"ttlMs":0,"cacheScope":"public"}`
	case "tools/list":
		return 0, `{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}},` +
			`{"name":"ro","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}],"ttlMs":0,"cacheScope":"public"}`
	case "tools/call", "prompts/get", "resources/read":
		var state string
		json.Unmarshal([]byte(req.member("requestState")), &state)
		answered := strings.Contains(req.member("inputResponses", "q"), `"accept"`)
		switch {
		case state == "":
			return 1, fmt.Sprintf(asks, 1, 1)
		case state == "<1>" && answered:
			return 2, fmt.Sprintf(asks, 2, 2)
		case state == "<2>" && answered:
			return 3, `{"resultType":"complete","content":[{"type":"text","text":"done"}],"messages":[],"contents":[{"uri":"x:y","text":"done"}],"ttlMs":0,"cacheScope":"private"}`
		}
	}
	return 0, `{"resultType":"complete"}`
}

// roundsOf returns the rounds that such a server has read.
func roundsOf(t *testing.T, folder string) string {
	log, err := os.ReadFile(filepath.Join(folder, "log"))
	require.NoError(t, err)
	return strings.Join(strings.Fields(string(log)), " ")
}

// The server dies at each step of a call with questions. Its later rounds go to the next process, unless one of them may have run and
// its tool is not safe to run twice. Nobody is asked twice, and no call whose first round has run is said not to have run.
func TestCallWithQuestionsOutlivesItsServer(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	for dies, want := range map[string]map[string]string{ // the rounds that the server gets, by tool
		"never":      {"t": "1 2 3"},
		"1 read":     {"t": "1", "ro": "1 1 2 3"},
		"1 answered": {"t": "1 2 3"},
		"2 read":     {"t": "1 2", "ro": "1 2 2 3"},
		"2 answered": {"t": "1 2 3"},
		"3 read":     {"t": "1 2 3", "ro": "1 2 3 3"},
	} {
		for tool, rounds := range want {
			t.Run(dies+" "+tool, func(t *testing.T) {
				folder := t.TempDir()
				h := newHarness(t)
				desk := newDesk(h)
				h.start(supervisor.Config{
					Servers: []mcpbridge.Server{{Name: "s", Command: exe, Env: map[string]string{roundsVar: folder + " " + dies}, PassOn: mcpbridge.PassOn{Verbatim: true}}},
					Handler: desk.pid, Capabilities: &mcp.ClientCapabilities{Elicitation: elicits.Elicitation}, BackoffBase: time.Millisecond,
				})
				defer h.stop()
				p := h.send(&messages.CallTool{Header: messages.To("s", "a"), Params: &mcp.CallToolParams{Name: tool}})
				failed := tool == "t" && strings.HasSuffix(dies, "read")
				for round := 1; round < 3 && (!failed || fmt.Sprint(round, " read") < dies); round++ {
					q := desk.question()
					require.JSONEq(t, fmt.Sprintf(`{"message":"%d","requestedSchema":{"type":"object","properties":{}},"x":1}`, round), string(q.Verbatim), "as it came")
					require.Equal(t, "tools/call", q.Operation.Method)
					if strings.HasSuffix(dies, "answered") {
						time.Sleep(100 * time.Millisecond) // until the session has seen the death
					}
					h.system.Root.Send(q.from, &messages.Elicited{AsSent: messages.AsSent{Verbatim: json.RawMessage(`{"action":"accept","content":{},"later":[1.0]}`)}})
				}
				if failed {
					require.True(t, p.fails(messages.CodeLost).MayHaveRun)
				} else {
					require.Equal(t, "done", p.text())
				}
				require.Equal(t, rounds, roundsOf(t, folder))
				require.Empty(t, desk.questions, "nobody is asked twice")
			})
		}
	}
}

// The server dies while a question is open, and does not come back: the call may have run.
func TestCallWithQuestionsMayHaveRunWhenItsServerIsGone(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	h := newHarness(t)
	desk := newDesk(h)
	h.start(supervisor.Config{
		Servers: []mcpbridge.Server{{Name: "s", Command: exe, Env: map[string]string{roundsVar: folder + " 1 answered"}}},
		Handler: desk.pid, Capabilities: &mcp.ClientCapabilities{Elicitation: elicits.Elicitation}, BackoffBase: time.Millisecond,
	})
	defer h.stop()
	p := h.send(call("a", "t", within(2*time.Second)))
	q := desk.question()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "gone"), nil, 0o600))
	time.Sleep(100 * time.Millisecond)
	q.accept()
	f, is := p.reply().(*messages.Failure)
	require.True(t, is)
	require.True(t, f.MayHaveRun, "%v", f)
	require.Equal(t, "1", roundsOf(t, folder))
}

// Our own process ends while a question of a durable call is open, or still waits for the answer. The next one asks the question
// again, and sends the next round; nothing of the rounds before is sent twice.
func TestDurableCallContinuesItsRoundsInTheNextProcess(t *testing.T) {
	for _, dies := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
			var rounds []int
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var req rawRequest
				if json.NewDecoder(r.Body).Decode(&req) != nil || req.ID == nil {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				round, result := answerRound(req)
				if round > 0 {
					rounds = append(rounds, round)
				}
				writeJSON(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result))
			})
			server := faults.Local(func() http.Handler { return handler })
			defer server.Close()
			store := new(resume.Memory)
			process := func() (*harness, *desk) {
				h := newHarness(t)
				desk := newDesk(h)
				h.start(supervisor.Config{
					Servers: []mcpbridge.Server{{Name: "s", URL: server.URL(), HTTPClient: &http.Client{Transport: server}}},
					Handler: desk.pid, Capabilities: &mcp.ClientCapabilities{Elicitation: elicits.Elicitation}, CallTimeout: time.Hour,
					Store: &struct{ *resume.Memory }{store},
				})
				return h, desk
			}
			h, desk := process()
			defer h.system.Root.Stop(desk.pid)
			p := h.send(call("a", "t", durable("pay-7")))
			open := desk.question()
			time.Sleep(time.Second)
			if !dies {
				h.stop()
				require.True(t, p.fails(messages.CodeClosed).MayHaveRun)
			}
			next, desk2 := process()
			defer next.system.Root.Stop(desk2.pid)
			defer next.stop()
			again := next.send(call("a", "t", durable("pay-7")))
			one := desk2.question()
			require.Equal(t, "1", one.Params.Message)
			require.Equal(t, []int{1}, rounds)
			one.accept()
			desk2.question().accept()
			require.Equal(t, "done", again.text())
			if dies { // the first process has hung, and comes back
				open.accept()
				require.Equal(t, "done", p.text())
				h.stop()
			}
			require.Equal(t, []int{1, 2, 3}, rounds)
			require.Equal(t, "done", next.send(call("a", "t", durable("pay-7"))).text(), "the result is kept")
			require.NotContains(t, fmt.Sprint(store), "requestState", "what was asked is not kept")
		})
	}
}

// Over HTTP: each round is a request of its own, also of prompts and resources, and the loop has its bounds.
func TestRoundsOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		count, endless := 0, false
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var req rawRequest
			if json.NewDecoder(r.Body).Decode(&req) != nil || req.ID == nil {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			round, result := answerRound(req)
			if endless && req.Method == "tools/call" {
				round, result = 1, `{"resultType":"input_required","requestState":"again"}`
			}
			if round > 0 {
				count++
			}
			writeJSON(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result))
		})
		server := faults.Local(func() http.Handler { return handler })
		defer server.Close()
		h := newHarness(t)
		desk := newDesk(h)
		defer h.system.Root.Stop(desk.pid)
		h.start(supervisor.Config{
			Servers: []mcpbridge.Server{{Name: "s", URL: server.URL(), HTTPClient: &http.Client{Transport: server}}},
			Handler: desk.pid, Capabilities: &mcp.ClientCapabilities{Elicitation: elicits.Elicitation},
		})
		defer h.stop()
		for _, op := range []messages.Operation{
			call("a", "t"), &messages.GetPrompt{Header: messages.To("s", "a"), Params: &mcp.GetPromptParams{Name: "p"}},
			&messages.ReadResource{Header: messages.To("s", "a"), Params: &mcp.ReadResourceParams{URI: "x:y"}},
		} {
			before := count
			p := h.send(op)
			desk.question().accept()
			desk.question().accept()
			result, is := p.reply().(messages.Result)
			require.True(t, is, "%v", p.reply())
			require.False(t, result.GetReceipt().Replayed)
			require.Equal(t, 1, result.GetReceipt().Attempt)
			require.Equal(t, before+3, count)
		}

		p := h.send(call("a", "t"))
		desk.question()
		h.system.Root.Send(h.pid, &messages.Cancel{Key: messages.Key{Server: "s", Scope: "a"}, ID: p.cmd.RequestID()})
		require.True(t, p.fails(messages.CodeCancelled).MayHaveRun)
		<-desk.withdrawn

		endless, count = true, 0
		require.True(t, h.send(call("a", "t")).fails(messages.CodeServerError).MayHaveRun)
		require.Equal(t, 3, count, "a server may not only ask to repeat the request")
	})
}

// A call counts once, however many rounds it takes, and is not held between them. So does one whose caller follows the rounds itself.
func TestLaterRoundsAreNeitherBoundedNorHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		busy := false
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var req rawRequest
			if json.NewDecoder(r.Body).Decode(&req) != nil || req.ID == nil {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			if busy && req.Method == "prompts/get" {
				w.Header().Set("Retry-After", "60")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			_, result := answerRound(req)
			writeJSON(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result))
		})
		server := faults.Local(func() http.Handler { return handler })
		defer server.Close()
		h := newHarness(t)
		desk := newDesk(h)
		defer h.system.Root.Stop(desk.pid)
		h.start(supervisor.Config{
			Servers: []mcpbridge.Server{{Name: "s", URL: server.URL(), HTTPClient: &http.Client{Transport: server}}},
			Handler: desk.pid, Capabilities: &mcp.ClientCapabilities{Elicitation: elicits.Elicitation},
			Bounds: []supervisor.Bound{{Total: 2}}, MaxRepeats: 1,
		})
		defer h.stop()
		p := h.send(call("a", "t"))
		question := desk.question()
		busy = true
		h.send(&messages.GetPrompt{Header: messages.To("s", "a"), Params: &mcp.GetPromptParams{Name: "p"}}).fails(messages.CodeRateLimited)
		question.accept()
		desk.question().accept()
		require.Equal(t, "done", p.text())
		time.Sleep(time.Minute)

		var extra map[string]json.RawMessage
		for _, answer := range []string{`"requestState":"<1>"`, `"requestState":"<2>"`, `"text":"done"`} {
			op := call("a", "t")
			op.AsIs, op.Verbatim, op.Extra = true, true, extra
			require.Contains(t, string(h.send(op).ok().Verbatim), answer)
			extra = map[string]json.RawMessage{"inputResponses": json.RawMessage(`{"q":{"action":"accept"}}`)}
			if _, state, is := strings.Cut(answer, `"requestState":`); is {
				extra["requestState"] = json.RawMessage(state)
			}
		}
		h.send(call("a", "t")).fails(messages.CodeRefused)
	})
}
