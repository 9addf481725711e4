package debug_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"github.com/mcpactor/mcpactor/internal/leaktest"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/debug"
	"github.com/mcpactor/mcpactor/tests/faults"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, leaktest.Throttle...)
}

// world is a supervisor with the server "s", which is a script, and its page, in a bubble of
// testing/synctest.
type world struct {
	t      *testing.T
	sup    *supervisor.Supervisor
	script *faults.Script
	page   *debug.Handler
}

// newSystem returns an actor system that logs nothing.
func newSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
}

// show runs a test with a page.
func show(t *testing.T, cfg supervisor.Config, page debug.Config, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		script := faults.NewScript(t, "s")
		script.Tool("note").Returns("noted")
		sup := script.Supervise(newSystem(), cfg)
		page.Hosts = append(page.Hosts, "example.com") // that of httptest
		w := &world{t, sup, script, debug.New(sup, page)}
		defer w.page.Close()
		test(t, w)
	})
}

// call calls a tool, and waits until the page has the events of the call, which can come
// after the reply.
func (w *world) call(scope string) {
	w.t.Helper()
	_, err := w.sup.Client().CallTool(w.t.Context(), "s", scope, &mcp.CallToolParams{Name: "note"})
	require.NoError(w.t, err)
	synctest.Wait()
}

// get requests a path below the page, when it shows what is now.
func (w *world) get(path string) *httptest.ResponseRecorder {
	w.t.Helper()
	time.Sleep(time.Second) // in the bubble: the age of a snapshot
	return w.do(httptest.NewRequest(http.MethodGet, "/debug/mcp/"+path, nil))
}

func (w *world) do(r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	w.page.ServeHTTP(answer, r)
	return answer
}

// post sends a form as the page does.
func (w *world) post(path string, form url.Values, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/debug/mcp/"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return w.do(r)
}

// textOf returns the text of a page, with single spaces.
func textOf(t *testing.T, page string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	var b strings.Builder
	for node := range root.Descendants() {
		if node.Type == html.TextNode {
			b.WriteString(node.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func TestPageShowsServersSessionsAndEvents(t *testing.T) {
	show(t, supervisor.Config{Tenant: supervisor.ScopePrefix("/")}, debug.Config{}, func(t *testing.T, w *world) {
		w.call("acme/1")
		w.script.Expire(faults.Expiries()[0])
		w.call("acme/1")
		answer := w.get("")
		require.Equal(t, http.StatusOK, answer.Code)
		text := textOf(t, answer.Body.String())
		for _, part := range []string{
			"Open sessions 1 of 256", "Expired 1", "Restarts 1", "Replayed calls 1",
			"s up", "1 ready", "2 succeeded", "1–1 of 1 sessions",
			"acme/1 s acme ready 2 0 0 2 1 1 s ago",
			"restarted acme/1 s 2", "call replayed acme/1 s 2 tools/call note, run 2", "expired acme/1 s 1", "opened acme/1 s 1",
		} {
			require.Contains(t, text, part)
		}
		require.NotContains(t, answer.Body.String(), "<form method=\"post\"")

		text = textOf(t, w.get("session?server=s&scope=acme/1").Body.String())
		for _, part := range []string{"State ready Generation 2", "Tenant acme", "Sessions in scope 1", "restarted at", "5 of the last 1000 events"} {
			require.Contains(t, text, part)
		}
		around := regexp.MustCompile(`href="(session[^"]*at=[^"]*)"`).FindStringSubmatch(w.get("session?server=s&scope=acme/1").Body.String())
		require.Len(t, around, 2, "the time of an event leads to the time around it")
		require.Contains(t, textOf(t, w.get(html.UnescapeString(around[1])).Body.String()), "10 s around "+text[strings.Index(text, "Detail ")+len("Detail "):][:len("15:04:05.000")]+" . Show all")
		require.Contains(t, textOf(t, w.get("session?server=s&scope=none").Body.String()), "There is no session of this scope on this server now.")
	})
}

func TestServerThatIsDownHasItsCauseAndTheNextProbe(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{}, func(t *testing.T, w *world) {
		w.call("a")
		w.script.Stop()
		failed := make(chan error)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := w.sup.Client().CallTool(ctx, "s", "b", &mcp.CallToolParams{Name: "note"})
			failed <- err
		}()
		text := textOf(t, w.get("").Body.String())
		require.Regexp(t, `s down for \d s next probe in \d s unavailable: .*connection refused`, text)
		require.Regexp(t, `b s waiting retry in \d s 0 0 1 1 \d+ 1 s ago unavailable`, text)
		require.Error(t, <-failed)
	})
}

func TestJSONHasTheFieldsOfTheMessages(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{}, func(t *testing.T, w *world) {
		for i := range 3 {
			w.call(fmt.Sprint("scope-", i))
		}
		for _, request := range []func() *httptest.ResponseRecorder{
			func() *httptest.ResponseRecorder { return w.get("?format=json&q=scope-1") },
			func() *httptest.ResponseRecorder {
				r := httptest.NewRequest(http.MethodGet, "/debug/mcp/?q=scope-1", nil)
				r.Header.Set("Accept", "application/json")
				return w.do(r)
			},
		} {
			answer := request()
			require.Equal(t, "application/json", answer.Header().Get("Content-Type"))
			var got struct {
				Snapshot              messages.Snapshot
				Matching, Page, Pages int
				Events                []map[string]any
			}
			decoder := json.NewDecoder(answer.Body)
			decoder.DisallowUnknownFields()
			require.NoError(t, decoder.Decode(&got))
			require.Len(t, got.Snapshot.Sessions, 1)
			require.Equal(t, messages.Key{Server: "s", Scope: "scope-1"}, got.Snapshot.Sessions[0].Key)
			require.Equal(t, messages.StateReady, got.Snapshot.Sessions[0].State)
			require.Equal(t, 3, got.Snapshot.Total)
			require.Equal(t, uint64(3), got.Snapshot.Servers[0].Load.Succeeded)
			require.Equal(t, []int{1, 1, 1}, []int{got.Matching, got.Page, got.Pages})
			require.Len(t, got.Events, 1)
			require.Equal(t, "session_opened", got.Events[0]["type"])
			require.Equal(t, map[string]any{"server": "s", "scope": "scope-1"}, got.Events[0]["key"])
		}

		var one struct {
			Time    time.Time
			Key     messages.Key
			Session *messages.SessionSnapshot
			Events  []json.RawMessage
		}
		require.NoError(t, json.Unmarshal(w.get("session?format=json&server=s&scope=scope-2").Body.Bytes(), &one))
		require.Equal(t, messages.Key{Server: "s", Scope: "scope-2"}, one.Session.Key)
		require.Len(t, one.Events, 1)
		require.NoError(t, json.Unmarshal(w.get("session?format=json&server=s&scope=none").Body.Bytes(), &one))
		require.Nil(t, one.Session)
	})
}

func TestRoutesMethodsAndHeaders(t *testing.T) {
	gets := map[string]int{
		"": 200, "?sort=nothing&page=x&state=%00": 200, "session?server=s": 200, "session": 400, "session?server=s&scope=%00": 400,
		"style.css": 200, "live.js": 200, "icon.svg": 200, "session-live": 400, "favicon.ico": 404, "assets/index.html": 404, "index.html": 404,
	}
	posts := []string{"close-scope", "close-session", "restart", "reset"}
	for _, actions := range []bool{false, true} {
		show(t, supervisor.Config{}, debug.Config{Actions: actions}, func(t *testing.T, w *world) {
			check := func(method, path string, status int) *httptest.ResponseRecorder {
				answer := w.do(httptest.NewRequest(method, "/debug/mcp/"+path, nil))
				require.Equal(t, status, answer.Code, "%s %s", method, path)
				policy := answer.Header().Get("Content-Security-Policy")
				require.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
					"base-uri 'none'; form-action 'self'; frame-ancestors 'none'", policy, path)
				require.Equal(t, "nosniff", answer.Header().Get("X-Content-Type-Options"))
				require.Equal(t, "no-store", answer.Header().Get("Cache-Control"))
				require.Equal(t, "same-origin", answer.Header().Get("Referrer-Policy"))
				require.NotEmpty(t, answer.Header().Get("Content-Type"))
				return answer
			}
			for path, status := range gets {
				check(http.MethodGet, path, status)
				check(http.MethodHead, path, status)
				for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "ANY"} {
					if status != 404 {
						require.Equal(t, http.MethodGet, check(method, path, 405).Header().Get("Allow"))
					} else {
						check(method, path, 404)
					}
				}
			}
			for _, path := range posts {
				for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut} {
					if actions {
						require.Equal(t, http.MethodPost, check(method, path, 405).Header().Get("Allow"))
					} else {
						check(method, path, 404)
					}
				}
				if !actions {
					check(http.MethodPost, path, 404)
				}
			}
			check(http.MethodHead, "live", 200)
		})
	}
}

func TestPageWorksUnderAnyPath(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{Actions: true}, func(t *testing.T, w *world) {
		w.call("a")
		mux := http.NewServeMux()
		mux.Handle("/debug/mcp/", w.page)
		mux.Handle("/any/", http.StripPrefix("/any", w.page))
		mux.Handle("/c/", http.StripPrefix("/c/", w.page))
		for _, mount := range []string{"/debug/mcp/", "/any/", "/c/"} {
			base, err := url.Parse("http://example.com" + mount)
			require.NoError(t, err)
			for _, page := range []string{"", "session?server=s&scope=a"} {
				from, err := base.Parse(page)
				require.NoError(t, err)
				for _, reference := range referencesOf(t, answerOf(t, mux, from).Body.String()) {
					to, err := from.Parse(reference)
					require.NoError(t, err)
					require.True(t, strings.HasPrefix(to.EscapedPath(), mount), "%s leads to %s", reference, to)
					require.NotEqual(t, http.StatusNotFound, answerOf(t, mux, to).Code, reference)
				}
			}
		}
	})
}

func answerOf(t *testing.T, handler http.Handler, to *url.URL) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, to.String(), nil)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r)
	return answer
}

// referencesOf returns what a page refers to.
func referencesOf(t *testing.T, page string) (references []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	for node := range root.Descendants() {
		for _, attribute := range node.Attr {
			switch attribute.Key {
			case "href", "src", "action":
				references = append(references, attribute.Val)
			}
		}
	}
	require.Greater(t, len(references), 5)
	return references
}

// attacks are scopes that would do something if they were not shown as text.
var attacks = []string{
	`<script>alert(1)</script>`, `</td></table><img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`, `' onfocus='alert(1)' autofocus='`,
	`javascript:alert(1)`, `//evil.example.com/x`, `https://evil.example.com`, `?server=other&scope=x#top`, `{{.}}`, `{{template "index"}}`,
	"user\u202egnp.exe", "a\u200bb", "a\u2066b\u2069", `]]>--><!--`, `&lt;b&gt;`, `data: x`, "עברית/42", strings.Repeat("long", 256),
}

func TestNamesAreShownAsTextAndNeverRun(t *testing.T) {
	show(t, supervisor.Config{Tenant: func(key messages.Key) string { return key.Scope }}, debug.Config{Actions: true}, func(t *testing.T, w *world) {
		for _, scope := range attacks {
			w.call(scope)
		}
		page := w.get("?q=%3Cscript%3E%22onx%3D'").Body.String()
		inert(t, page)
		page = w.get("").Body.String()
		inert(t, page)
		text, references := textOf(t, page), referencesOf(t, page)
		for _, scope := range attacks {
			shown := strings.NewReplacer("\u202e", "‹U+202E›", "\u200b", "‹U+200B›", "\u2066", "‹U+2066›", "\u2069", "‹U+2069›").Replace(scope)
			require.Contains(t, text, shown)
			of := url.Values{"server": {"s"}, "scope": {scope}}
			one := w.get("session?" + of.Encode()).Body.String()
			inert(t, one)
			require.Contains(t, textOf(t, one), shown)
			require.Contains(t, textOf(t, one), "State ready")
			require.Contains(t, references, "session?"+of.Encode())
			done := w.post("close-session", of).Body.String()
			inert(t, done)
			require.Contains(t, textOf(t, done), "Closed 1 session: "+shown+" on s.")
		}
	})
}

// inert requires that a page consists of what the templates contain.
func inert(t *testing.T, page string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	for node := range root.Descendants() {
		require.NotEqual(t, html.CommentNode, node.Type)
		if node.Type != html.ElementNode {
			continue
		}
		require.NotContains(t, []string{"img", "iframe", "object", "embed", "base", "style"}, node.Data)
		for _, attribute := range node.Attr {
			require.False(t, strings.HasPrefix(attribute.Key, "on"), attribute.Key)
			require.NotContains(t, []string{"style", "srcdoc", "autofocus"}, attribute.Key)
			switch attribute.Key {
			case "href", "src", "action":
				require.Regexp(t, `^(\./|\?|session\?|style\.css$|live\.js$|icon\.svg$|restart$|reset$|close-session$|close-scope$)`, attribute.Val)
			}
		}
		if node.Data == "script" {
			require.Nil(t, node.FirstChild, "a script in the page")
			require.Equal(t, "live.js", node.Attr[0].Val)
		}
	}
}

func TestSecretsAreNotOnThePage(t *testing.T) {
	const argument, result, log = "argument-secret", "result-secret", "log-secret"
	show(t, supervisor.Config{}, debug.Config{Actions: true}, func(t *testing.T, w *world) {
		var session string
		w.script.Inject("tools/call", func(out http.ResponseWriter, r *faults.Request, next http.Handler) {
			session = r.Session
			next.ServeHTTP(out, r.Request)
		})
		w.script.Tool("secret").Does(func(ctx context.Context, run *faults.Run) (any, error) {
			return result, run.Progress(ctx, 1, 2, log)
		})
		call := &mcp.CallToolParams{Name: "secret", Arguments: map[string]any{"password": argument}}
		_, err := w.sup.Client().CallTool(t.Context(), "s", "a", call)
		require.NoError(t, err)
		w.script.Expire(faults.Expiries()[0])
		_, err = w.sup.Client().CallTool(t.Context(), "s", "a", call)
		require.NoError(t, err)
		require.NotEmpty(t, session)
		for _, path := range []string{"", "?format=json", "session?server=s&scope=a", "session?server=s&scope=a&format=json"} {
			page := w.get(path).Body.String()
			for _, secret := range []string{argument, result, log, session} {
				require.NotContains(t, page, secret, path)
			}
		}
	})
}

func TestFilterSortAndPages(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{}, func(t *testing.T, w *world) {
		for i := range 120 {
			w.call(fmt.Sprintf("scope-%03d", i))
		}
		for range 3 {
			w.call("scope-007")
		}
		first := textOf(t, w.get("").Body.String())
		require.Contains(t, first, "1–100 of 120 sessions")
		require.Contains(t, first, "Page 1 of 2")
		second := textOf(t, w.get("?page=2").Body.String())
		require.Contains(t, second, "101–120 of 120 sessions")
		require.Contains(t, textOf(t, w.get("?page=99").Body.String()), "Page 2 of 2")
		require.Contains(t, textOf(t, w.get("?q=SCOPE-00").Body.String()), "1–10 of 10 sessions that match, 120 in all")
		require.Contains(t, textOf(t, w.get("?q=nothing").Body.String()), "None of 120 sessions matches")
		require.Contains(t, textOf(t, w.get("?state=broken").Body.String()), "None of 120 sessions matches")
		require.Contains(t, textOf(t, w.get("?server=other").Body.String()), "None of 120 sessions matches")
		busiest := w.get("?sort=-calls").Body.String()
		require.Regexp(t, `(?s)<tbody>.*?<tbody>\s*<tr[^>]*><th[^>]*><a href="session\?scope=scope-007`, busiest)
		require.Contains(t, busiest, `aria-sort="descending"`)
		require.Contains(t, busiest, `href="?sort=calls"`)
		require.Contains(t, busiest, `href="?page=2&amp;sort=-calls"`)
	})
}

func TestActionsSayWhatTheyHaveDone(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{Actions: true}, func(t *testing.T, w *world) {
		w.call("a")
		w.call("b")
		page := w.get("session?server=s&scope=a").Body.String()
		for _, route := range []string{"restart", "close-session", "close-scope", "reset"} {
			require.Contains(t, page, `<form method="post" action="`+route+`"`)
		}
		of := func(scope string) url.Values { return url.Values{"server": {"s"}, "scope": {scope}} }
		done := func(route string, form url.Values, status int, text string) {
			t.Helper()
			answer := w.post(route, form)
			require.Equal(t, status, answer.Code)
			require.Contains(t, textOf(t, answer.Body.String()), text)
		}
		done("restart", of("a"), 200, "Restarted: a on s.")
		require.Contains(t, textOf(t, w.get("session?server=s&scope=a").Body.String()), "Generation 2")
		done("restart", of("none"), 404, "there is no session of none on s")
		done("close-session", of("a"), 200, "Closed 1 session: a on s.")
		done("close-session", of("a"), 200, "Closed no session: a on s.")
		done("close-scope", url.Values{"scope": {"b"}}, 200, "Closed 1 session of scope b.")
		done("reset", url.Values{"server": {"s"}}, 200, "Reset: the next call dials s at once.")
		require.Contains(t, textOf(t, w.get("").Body.String()), "No sessions yet")

		done("reset", url.Values{"server": {"other"}}, 404, "other")
		done("reset", nil, 404, "unknown_server")
		done("close-scope", nil, 400, "scope: is empty")
		done("close-session", url.Values{"scope": {"b"}}, 400, "server: is empty")
		done("restart", url.Values{"server": {"s"}, "scope": {strings.Repeat("x", 2000)}}, 400, "scope: has 2000 bytes")
		done("restart", url.Values{"server": {strings.Repeat("x", 100_000)}}, 400, "the form cannot be read")

		w.call("c")
		answer := w.post("close-scope", url.Values{"scope": {"c"}}, "Accept", "application/json")
		require.JSONEq(t, `{"text": "Closed 1 session of scope c.", "reply": {"sessions": 1}}`, answer.Body.String())
		answer = w.post("reset", url.Values{"server": {"other"}}, "Accept", "application/json")
		require.Equal(t, http.StatusNotFound, answer.Code)
		require.Contains(t, answer.Body.String(), `{"error":`)
	})
}

func TestResetLetsTheNextCallDialAtOnce(t *testing.T) {
	show(t, supervisor.Config{CoolDown: time.Hour}, debug.Config{Actions: true}, func(t *testing.T, w *world) {
		remove := w.script.Inject("initialize", faults.Refuse(http.StatusUnauthorized, "no"))
		probe := w.script.Inject("server/discover", faults.Refuse(http.StatusUnauthorized, "no"))
		_, err := w.sup.Client().Open(t.Context(), "s", "a")
		require.ErrorIs(t, err, messages.CodeUnauthorized)
		remove()
		probe()
		require.Contains(t, textOf(t, w.get("").Body.String()), "broken retry in 59 min")
		require.Equal(t, http.StatusOK, w.post("reset", url.Values{"server": {"s"}}).Code)
		w.call("a")
		require.Contains(t, textOf(t, w.get("").Body.String()), "a s ready")
	})
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{Actions: true}, func(t *testing.T, w *world) {
		w.call("a")
		form := url.Values{"server": {"s"}, "scope": {"a"}}
		for _, header := range [][]string{
			{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example.com"}, {"Origin", "null"},
		} {
			answer := w.post("close-session", form, header...)
			require.Equal(t, http.StatusForbidden, answer.Code, header)
		}
		require.Contains(t, textOf(t, w.get("").Body.String()), "a s ready")
		require.Equal(t, http.StatusOK, w.post("close-session", form, "Sec-Fetch-Site", "same-origin").Code)
		w.call("a")
		require.Equal(t, http.StatusOK, w.post("close-session", form, "Origin", "http://example.com").Code) // that of httptest
	})
}

// address is the address that a request came to.
type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

// A site that makes its own name resolve to the address of the page could read it, and send
// forms that look like those of the page. Wherever the page listens, it is reached by a name
// only if it is configured.
func TestPageIsNotReachedByNamesOfOthers(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{Actions: true, Hosts: []string{"ops.example.com", "Mixed.Example.com"}}, func(t *testing.T, w *world) {
		for host, accepted := range map[string]bool{
			"127.0.0.1:80":               true,
			"127.9.9.9":                  true,
			"192.0.2.7:8080":             true,
			"[::1]:80":                   true,
			"[2001:db8::1]":              true,
			"localhost":                  true,
			"LOCALHOST:80":               true,
			"ops.example.com:80":         true,
			"mixed.example.COM":          true,
			"evil.example.com":           false,
			"evil.example.com:80":        false,
			"localhost.evil.example.com": false,
			"127.0.0.1.evil.example.com": false,
			"0x7f.1":                     false,
			"":                           false,
		} {
			for _, local := range []net.Addr{address("127.0.0.1:80"), address("[::1]:80"), address("192.0.2.7:80"), nil} {
				look := httptest.NewRequest(http.MethodGet, "/debug/mcp/", nil)
				act := httptest.NewRequest(http.MethodPost, "/debug/mcp/close-scope", strings.NewReader("scope=a"))
				act.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				act.Header.Set("Sec-Fetch-Site", "same-origin")
				for _, r := range []*http.Request{look, act} {
					r.Host = host
					if local != nil {
						r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
					}
					want := http.StatusForbidden
					if accepted {
						want = http.StatusOK
					}
					require.Equal(t, want, w.do(r).Code, "%s %q on %v", r.Method, host, local)
				}
			}
		}
	})
}

func TestPageOfASupervisorThatHasStoppedSaysSo(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{Actions: true}, func(t *testing.T, w *world) {
		w.call("a")
		require.NoError(t, w.sup.Stop(t.Context()))
		for _, path := range []string{"", "session?server=s&scope=a", "?format=json"} {
			answer := w.get(path)
			require.Equal(t, http.StatusServiceUnavailable, answer.Code)
			require.Contains(t, answer.Body.String(), "closed")
		}
		require.Equal(t, http.StatusServiceUnavailable, w.post("reset", url.Values{"server": {"s"}}).Code)
	})
	none := debug.New(nil, debug.Config{})
	defer none.Close()
	answer := httptest.NewRecorder()
	none.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost/", nil))
	require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	require.Contains(t, answer.Body.String(), "belongs to no supervisor")
}

func TestClosedPageRefusesRequestsAndKeepsNoEvents(t *testing.T) {
	show(t, supervisor.Config{}, debug.Config{}, func(t *testing.T, w *world) {
		events := w.sup.System().EventStream
		before := events.Length()
		w.page.Close()
		w.page.Close()
		require.Equal(t, before-1, events.Length())
		require.Equal(t, http.StatusServiceUnavailable, w.get("").Code)
	})
}
