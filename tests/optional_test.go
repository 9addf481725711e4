package tests

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/tests/internal/refusals"
)

// says answers with a status and a body of a type.
func says(status int, contentType, body string) faults.Fault {
	return func(w http.ResponseWriter, _ *faults.Request, _ http.Handler) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// refusal is a way in which a server refuses what it need not answer.
type refusal struct {
	name    string
	fault   faults.Fault // over streamable HTTP
	instead string       // in place of a result, over any transport
}

// waysToRefuse are the ways in which a server refuses what it need not answer.
var waysToRefuse = []refusal{
	rpcError(-32601), rpcError(-32600), rpcError(-32602), rpcError(-32603),
	{"nonsense", says(200, "application/json", `{"hello":"world"}`), `"hello":"world"`},
	{"ignored", faults.Hang(), ""},
	{"400", faults.Refuse(400, "Bad Request"), none},
	{"400 without an id", faults.Refuse(400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request"},"id":null}`), none},
	{"401", faults.Refuse(401, "Unauthorized"), none},
	{"403", faults.Refuse(403, "Forbidden"), none},
	{"404 with its id", faults.Refuse(404, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`), none},
	{"405", faults.Refuse(405, "Method Not Allowed"), none},
	{"406", faults.Refuse(406, "Not Acceptable"), none},
	{"500", faults.Refuse(500, "Internal Server Error"), none},
	{"501", faults.Refuse(501, "Not Implemented"), none},
	{"503", faults.Refuse(503, "Service Unavailable"), none},
	{"a page", says(200, "text/html", "<html><body>Welcome</body></html>"), none},
	{"nothing", says(200, "", ""), none},
	{"202", says(202, "", ""), none},
	{"no JSON", says(200, "application/json", `{"jsonrpc":`), none},
	{"closed", faults.Cut(), none},
}

// none says that a refusal is one of HTTP only.
const none = "none"

// rpcError is a refusal by a JSON-RPC error with the id of the request.
func rpcError(code int) refusal {
	outcome := fmt.Sprintf(`"error":{"code":%d,"message":"no"}`, code)
	return refusal{fmt.Sprint(code), faults.Refuse(200, `{"jsonrpc":"2.0","id":%s,`+outcome+`}`), outcome}
}

// questions are what a session asks or tells a server by itself. A fault is for the requests
// of a kind.
var questions = []struct {
	name, kind string
	habits     habits
	only       func(r *faults.Request) bool // the requests of the kind that are meant; nil means all
}{
	{name: "nothing"},
	{name: "nothing of a server that resumes", habits: habits{resumable: true}},
	{name: "server/discover"},
	{name: "ping"},
	{name: "keepalive", kind: "ping", habits: habits{keepAlive: time.Minute}},
	{name: "tools/list"},
	{name: "notifications/initialized"},
	{name: "notifications/cancelled"},
	{name: "GET", only: func(r *faults.Request) bool { return r.Header.Get("Last-Event-Id") == "" }},
	{name: "resumption", kind: "GET", habits: habits{resumable: true}, only: func(r *faults.Request) bool { return r.Header.Get("Last-Event-Id") != "" }},
	{name: "DELETE"},
}

// forgotten are three forms in which a server says that it does not know a session: certain,
// in doubt, and in doubt with the id of the request.
var forgotten = []string{"go-sdk 1.8.0", "typescript-sdk 1.24.3, example", "wsp-wordpress-mcp 2.6.6"}

// plain is what a plain user does with a server, and what came out.
type plain struct {
	*harness
	server  *faults.Server
	raw     *rawServer
	noLists bool
	said    []string
	slowest time.Duration
	since   time.Time // no call counts as waiting before this
}

// note notes what came out of commands.
func (p *plain) note(cmds ...*sentCommand) {
	for _, cmd := range cmds {
		p.said = append(p.said, outcome(cmd.reply()))
		from := cmd.sent
		if from.Before(p.since) {
			from = p.since
		}
		p.slowest = max(p.slowest, cmd.answeredAt.Sub(from))
	}
}

// ask calls a tool that may not be run again, then one that may, and lists the tools.
func (p *plain) ask() {
	p.note(p.send(call("a", "count")))
	p.note(p.send(call("a", "count", replay(messages.ReplayAlways))))
	if !p.noLists {
		p.note(p.send(&messages.ListTools{Header: messages.To("s", "a")}))
	} else {
		p.said = append(p.said, "tools")
	}
}

// outcome puts a reply in words.
func outcome(r messages.Reply) string {
	switch r := r.(type) {
	case *messages.ToolResult:
		if !r.Result.IsError && len(r.Result.Content) == 1 {
			return r.Result.Content[0].(*mcp.TextContent).Text
		}
	case *messages.ToolList:
		if len(r.Result.Tools) == 2 {
			return "tools"
		}
	case *messages.Failure:
		if r.MayHaveRun {
			return string(r.Code) + "?"
		}
		return string(r.Code)
	}
	return fmt.Sprintf("%+v", r)
}

// condition is what happens to the session of a plain user. A server that forgets the
// session says so in the given form.
type condition struct {
	name   string
	happen func(p *plain, form refusals.Refusal)
	want   string        // what comes out
	limit  time.Duration // for each command
}

var conditions = []condition{
	{"idle", func(p *plain, _ refusals.Refusal) {
		p.ask()
		time.Sleep(10 * time.Minute) // synctest
		p.ask()
	}, "1 2 tools 3 4 tools", time.Second},
	{"cut between calls", func(p *plain, _ refusals.Refusal) {
		p.ask()
		p.outage(300*time.Millisecond, p.ask)
		p.ask()
	}, "1 2 tools 3 4 tools 5 6 tools", time.Second},
	{"cut in a call", func(p *plain, _ refusals.Refusal) {
		p.ask()
		once, again := p.send(call("a", "wait")), p.send(call("a", "wait", replay(messages.ReplayAlways)))
		synctest.Wait()
		p.outage(300*time.Millisecond, func() {})
		p.raw.release()
		p.note(once, again)
		slices.Sort(p.said[len(p.said)-2:])
		p.ask()
	}, "1 2 tools 5 lost? 6 7 tools", time.Second},
	{"restarted", func(p *plain, form refusals.Refusal) {
		p.ask()
		p.raw.unknown = form.Respond
		p.server.Expire(form.Expiry())
		require.NoError(p.t, p.server.Restart())
		p.ask()
		p.ask()
	}, "1 2 tools 1 2 tools 3 4 tools", time.Second},
	{"away behind a front", func(p *plain, form refusals.Refusal) {
		p.ask()
		back := p.server.Inject("", faults.Refuse(502, "<html>502 Bad Gateway</html>"))
		p.raw.unknown = form.Respond
		p.server.Expire(form.Expiry())
		require.NoError(p.t, p.server.Restart())
		time.Sleep(time.Second) // synctest
		again := p.send(call("a", "count", replay(messages.ReplayAlways)))
		time.Sleep(time.Second) // synctest
		once := p.send(call("a", "count"))
		time.Sleep(time.Second) // synctest
		back()
		p.since = time.Now()
		p.note(again, once)
		slices.Sort(p.said[len(p.said)-2:])
		p.ask()
	}, "1 2 tools 1 2 3 4 tools", 3 * time.Second},
}

// exception is a pair whose refusal legitimately changes what comes out, or when.
type exception struct {
	question string
	hows     []string // nil means all
	during   []string // nil means all conditions
	want     string   // empty: as in any other pair
	limit    time.Duration
	why      string
}

var exceptions = []exception{
	{"nothing of a server that resumes", nil, []string{"cut in a call"}, "1 2 tools 3 4 5 6 tools", 3 * time.Second, "the SDK resumes an answer some time after the cut"},
	{"server/discover", []string{"ignored"}, nil, "", 5 * time.Second, "the first session waits for the answer, since a server that is slow to start looks the same"},
	{"notifications/initialized", []string{"404 with its id"}, nil, "", 2 * time.Second, "a notification has no id, so that this is the answer to a session that is not known yet"},
	{"resumption", []string{"404 with its id"}, []string{"cut in a call"}, "1 2 tools 1 lost? 2 3 tools", 3 * time.Second, "a GET has no id, so that this says that the session is not known"},
	{"resumption", []string{"ignored"}, []string{"cut in a call"}, "1 2 tools deadline? deadline? 5 6 tools", time.Minute, "a proxy may withhold the headers until there is an answer"},
	{"resumption", []string{"401", "403", "500", "503", "closed"}, []string{"cut in a call"}, "", 10 * time.Second, "it may pass, and the answer be resumed"},
	{"tools/list", []string{"ignored", "202"}, []string{"cut in a call"}, "", 3 * time.Second / 2, "resuming the session, and the annotations of a call that was lost, wait half a second each"},
	{"tools/list", []string{"closed"}, []string{"cut in a call"}, "", 5 * time.Second, "over HTTP+SSE each list that is closed ends the session, and the backoff grows"},
	{"resumption", nil, []string{"cut in a call"}, "", 3 * time.Second, "the SDK resumes an answer some time after the cut"},
}

// expected returns what comes out of a pair, and how long each command may take.
func (c condition) expected(question, how string) (want string, limit time.Duration) {
	for _, e := range exceptions {
		if e.question == question && (e.hows == nil || slices.Contains(e.hows, how)) && (e.during == nil || slices.Contains(e.during, c.name)) {
			return cmp.Or(e.want, c.want), max(e.limit, c.limit)
		}
	}
	return c.want, c.limit
}

// outage stops the server, which keeps its sessions, for some time. Meanwhile calls are made.
func (p *plain) outage(d time.Duration, meanwhile func()) {
	p.server.Stop()
	p.since = time.Now().Add(d)
	back := make(chan error)
	time.AfterFunc(d, func() { back <- p.server.Start() })
	meanwhile()
	require.NoError(p.t, <-back)
}

var allForms = flag.Bool("optional.forms", false, "try each form of forgetting a session with each pair")

// C11: whatever a server does to the requests that a session makes by itself, the calls of
// its user come out as if it had answered them, at any moment.
func TestRequestsOfOurOwnThatAreRefusedChangeNoCall(t *testing.T) {
	t.Parallel()
	for i, q := range questions {
		ways := waysToRefuse
		if strings.HasPrefix(q.name, "nothing") {
			ways = ways[:1]
		}
		for k, how := range ways {
			for _, c := range conditions {
				forms := forgotten
				if !*allForms && len(ways) > 1 {
					forms = forms[(i+k)%len(forms):][:1]
				}
				for _, form := range forms {
					t.Run(strings.Join([]string{q.name, how.name, c.name, form}, "/"), func(t *testing.T) {
						t.Parallel()
						overRawHTTP(t, q.habits, func(p *plain) {
							p.noLists = q.name == "tools/list"
							heal := p.server.Inject(cmp.Or(q.kind, q.name), onlyIf(q.only, how.fault))
							defer heal()
							c.happen(p, refusalOf(t, form))
							want, limit := c.expected(q.name, how.name)
							if silent := []string{"ignored", "202", "closed"}; c.name == "idle" && (q.name != "keepalive" || !slices.Contains(silent, how.name)) {
								require.Zero(t, countEvents[*messages.SessionRestarting](p.harness))
							}
							if got := strings.Join(p.said, " "); got != want || p.slowest > limit {
								t.Errorf("got %s in %v, want %s in %v", got, p.slowest, want, limit)
							}
						})
					})
				}
			}
		}
	}
}

// C11: the same over HTTP+SSE, where a session ends with its connection.
func TestRequestsOfOurOwnThatAreRefusedOverHTTPAndSSEChangeNoCall(t *testing.T) {
	t.Parallel()
	for _, q := range questions {
		if q.habits.resumable || !strings.Contains(q.name, "/") && q.name != "ping" {
			continue // HTTP+SSE has no such request
		}
		for _, how := range waysToRefuse {
			for _, c := range conditions {
				t.Run(strings.Join([]string{q.name, how.name, c.name}, "/"), func(t *testing.T) {
					t.Parallel()
					habits := habits{sse: true}
					if how.instead != none {
						habits.instead = map[string]string{q.name: how.instead}
					}
					overRawHTTP(t, habits, func(p *plain) {
						p.noLists = q.name == "tools/list"
						if how.instead == none {
							heal := p.server.Inject(q.name, how.fault)
							defer heal()
						}
						c.happen(p, refusalOf(t, forgotten[0]))
						_, limit := c.expected(q.name, how.name)
						p.requireOutcomes(c.want, limit)
					})
				})
			}
		}
	}
}

// C11: the same in memory, where a session ends when the server closes it.
func TestRequestsOfOurOwnThatAServerInMemoryRefusesChangeNoCall(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"server/discover", "ping", "tools/list", "notifications/initialized"} {
		for _, code := range []int64{-32601, -32600, -32602, -32603, 0} {
			t.Run(fmt.Sprint(method, "/", code), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
					tools := faults.NewTools()
					defer tools.Close()
					server := tools.Server()
					server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
						return func(ctx context.Context, is string, req mcp.Request) (mcp.Result, error) {
							switch {
							case is != method:
								return next(ctx, is, req)
							case code == 0: // it is never answered
								<-ctx.Done()
								return nil, ctx.Err()
							}
							return nil, &jsonrpc.Error{Code: code, Message: "no"}
						}
					})
					h := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", InMemory: server}}})
					defer h.stop()
					h.executed = tools.Executions
					p := &plain{harness: h, noLists: true}
					p.ask()
					for session := range server.Sessions() {
						session.Close()
					}
					p.ask()
					p.requireOutcomes("1 2 tools 1 2 tools", time.Second)
					h.stopAndVerify()
				})
			})
		}
	}
}

// isOneOf matches requests of the given kinds.
func isOneOf(kinds ...string) func(*faults.Request) bool {
	return func(r *faults.Request) bool { return slices.Contains(kinds, r.Kind) }
}

// onlyIf limits a fault to the requests that match.
func onlyIf(matches func(*faults.Request) bool, f faults.Fault) faults.Fault {
	return func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
		if matches == nil || matches(r) {
			f(w, r, next)
			return
		}
		next.ServeHTTP(w, r.Request)
	}
}

// overRawHTTP runs a scenario in a bubble of fake time, with a raw server named "s".
func overRawHTTP(t *testing.T, habits habits, scenario func(p *plain)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		raw := newRawServer(habits)
		server := faults.Local(raw.fresh)
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		defer server.Close()              // also when the scenario fails
		defer raw.release()
		config := mcpbridge.Server{Name: "s", URL: server.URL() + "/mcp", KeepAlive: habits.keepAlive, HTTPClient: &http.Client{Transport: server}}
		if habits.sse {
			config.Transport = mcpbridge.TransportSSE
		}
		h := start(t, supervisor.Config{Servers: []mcpbridge.Server{config}})
		defer h.stop()
		h.executed = raw.executions
		if !habits.sse && !habits.newIDs { // which are no sessions of HTTP, or many
			h.overlaps = server.Overlaps
		}
		scenario(&plain{harness: h, server: server, raw: raw})
		raw.release()
		h.stop()
		server.Close()
		h.verify()
	})
}
