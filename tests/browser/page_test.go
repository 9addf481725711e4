package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/debug"
	"github.com/mcpactor/mcpactor/tests/browser/internal/site"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// call calls a tool that may be repeated.
func call(t *testing.T, s *site.Site, server, scope string) {
	t.Helper()
	require.NoError(t, s.Call(t.Context(), server, scope, "count/ro"))
}

func TestSessionIsSeenThroughExpiryAndRestartWithoutReload(t *testing.T) {
	s := start(t, supervisor.Config{}, debug.Config{})
	b := browse(t, s, "", 1280)
	one := browse(t, s, "session?server=one&scope=conversation-1", 1280)
	require.Contains(t, one.text("facts"), "There is no session")
	loads := b.loads()

	call(t, s, "one", "conversation-1")
	b.waitText("sessions", "conversation-1 one ready 1")
	one.waitText("facts", "ready")
	one.waitText("history", "opened")

	s.Servers["one"].Expire(faults.Expiries()[0])
	call(t, s, "one", "conversation-1")
	b.waitText("sessions", "conversation-1 one ready 2")
	b.waitText("supervisor", "Expired 1")
	b.waitText("events", "expired conversation-1 one 1")
	b.waitText("events", "restarted conversation-1 one 2")
	one.waitText("history", "call replayed 2 tools/call count/ro, run 2")
	one.wait(`document.querySelectorAll("#timeline .mark.bad").length >= 2`) // the mark and the legend
	one.wait(`document.querySelectorAll("#timeline rect.open").length === 2`)

	s.Servers["one"].Stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error)
	go func() { done <- s.Call(ctx, "one", "conversation-2", "count/ro") }()
	b.waitText("servers", "down")
	b.waitText("sessions", "conversation-2 one waiting retry")
	b.waitText("servers", "next probe")
	require.NoError(t, s.Servers["one"].Start())
	require.NoError(t, <-done)
	b.waitText("servers", "up")
	b.waitText("sessions", "conversation-2 one ready 1")
	require.Equal(t, loads, b.loads(), "the page was loaded again")
}

func TestPageThatIsPausedDoesNotChange(t *testing.T) {
	s := start(t, supervisor.Config{}, debug.Config{})
	b, other := browse(t, s, "", 1280), browse(t, s, "", 1280)
	call(t, s, "one", "a")
	b.waitText("sessions", "a one ready")
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS("#pause"))))
	b.waitText("live", "Paused")
	call(t, s, "one", "b")
	other.waitText("sessions", "b one ready")
	require.NotContains(t, b.text("sessions"), "b one ready")
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS("#pause"))))
	b.waitText("sessions", "b one ready")
	require.NoError(t, s.Supervisor.Stop(t.Context()))
	b.waitText("live", "Stopped")
	other.waitText("live", "Stopped")
}

func TestFilterFollowsTheKeysAndFocusAndSelectionStay(t *testing.T) {
	s := start(t, supervisor.Config{}, debug.Config{})
	require.NoError(t, s.Open(t.Context(), 30, func(i int) string { return fmt.Sprintf("conversation-%02d", i) }))
	b := browse(t, s, "", 1280)
	loads := b.loads()
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Focus(chromedp.CSS("[name=q]"))))
	b.press("tion-07")
	b.waitText("range", "1–2 of 2 sessions that match, 60 in all")
	require.Equal(t, "?q=tion-07", eval[string](b, "location.search"))
	require.Equal(t, "q", b.focused())

	// What a person has selected, focused or scrolled to stays while rows around it change.
	eval[bool](b, `getSelection().selectAllChildren(document.querySelector("#sessions tbody tr th")) || true`)
	selected := eval[string](b, "getSelection().toString()")
	call(t, s, "two", "conversation-07")
	b.wait(`document.querySelectorAll("#sessions td[data-label=Calls]")[1].innerText === "2"`)
	require.Equal(t, selected, eval[string](b, "getSelection().toString()"))
	require.Equal(t, "q", b.focused())
	require.Equal(t, "tion-07", eval[string](b, "document.activeElement.value"))

	b.press(kb.Tab + "o") // the select of the servers
	b.waitText("range", "1–1 of 1 sessions that match")
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Evaluate[chromedp.Void](`history.back()`)))
	b.waitText("range", "1–2 of 2 sessions that match")
	require.Equal(t, "tion-07 all", eval[string](b, `[document.querySelector("[name=q]").value, document.querySelector("[name=server]").selectedOptions[0].text].join(" ")`))
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS("#servers tbody a"))))
	b.waitText("range", "1–30 of 30 sessions that match, 60 in all")
	require.Equal(t, " one", eval[string](b, `[document.querySelector("[name=q]").value, document.querySelector("[name=server]").value].join(" ")`))
	require.Equal(t, loads, b.loads(), "the page was loaded again")

	eval[bool](b, `document.querySelector("#sessions tbody tr:nth-child(5) a").focus() || true`)
	eval[bool](b, `(scrollTo({top: 300, behavior: "instant"}), true)`)
	before := b.focused()
	call(t, s, "one", "a first row")
	b.waitText("sessions", "a first row")
	require.Equal(t, before, b.focused())
	require.InDelta(t, 300, eval[float64](b, "scrollY"), 60, "at most by the new row, which the browser makes up for")
}

func TestSortAndPagesByKeyboardOnly(t *testing.T) {
	s := start(t, supervisor.Config{MaxSessions: 1000}, debug.Config{})
	require.NoError(t, s.Open(t.Context(), 120, func(i int) string { return fmt.Sprintf("conversation-%03d", i) }))
	for range 3 {
		call(t, s, "two", "conversation-077")
	}
	b := browse(t, s, "", 1280)
	loads := b.loads()
	b.tabTo("Calls")
	b.press(kb.Enter)
	b.wait(`document.querySelector("th[data-key=calls]").ariaSort === "descending"`)
	b.wait(`document.querySelector("#sessions tbody tr").innerText.includes("conversation-077")`)
	require.Contains(t, b.focused(), "Calls")
	b.press(kb.Enter)
	b.wait(`document.querySelector("th[data-key=calls]").ariaSort === "ascending"`)
	require.Contains(t, b.focused(), "Calls")
	b.tabTo("Next")
	for page := 2; page <= 3; page++ {
		b.press(kb.Enter)
		b.waitText("sessions", fmt.Sprintf("Page %d of 3", page))
		require.Equal(t, "Next", b.focused())
	}
	b.press(kb.Enter) // there is no further page
	b.wait(`document.activeElement.ariaDisabled === "true"`)
	require.Contains(t, b.text("sessions"), "Page 3 of 3")
	require.Contains(t, b.text("notice"), "201–240 of 240 sessions")
	require.Equal(t, loads, b.loads(), "the page was loaded again")
}

// tabTo presses the Tab key until an element with a text has the focus.
func (b *tab) tabTo(text string) {
	b.t.Helper()
	for range 400 {
		b.press(kb.Tab)
		if focused := b.focused(); focused == text || strings.HasPrefix(focused, text+" ") {
			return
		}
	}
	require.Fail(b.t, "the Tab key does not lead there", text)
}

func TestActionsInTheBrowser(t *testing.T) {
	s := start(t, supervisor.Config{}, debug.Config{Actions: true})
	call(t, s, "one", "a")
	call(t, s, "two", "a")
	b := browse(t, s, "session?server=one&scope=a", 1280)
	loads := b.loads()
	b.tabTo("Actions")
	b.press(kb.Enter)
	b.tabTo("Restart the session")
	b.press(kb.Enter)
	b.waitText("notice", "Restarted: a on one.")
	b.waitText("facts", "Generation 2")
	require.Equal(t, "Restart the session", b.focused())
	require.True(t, eval[bool](b, `document.querySelector("details").open`), "the update has closed what was open")
	b.tabTo("Close the session")
	b.press(kb.Enter)
	b.waitText("notice", "Closed 1 session: a on one.")
	b.waitText("facts", "There is no session")
	b.tabTo("Close the scope")
	b.press(kb.Enter)
	b.waitText("notice", "Closed 1 session of scope a.")
	b.tabTo("Reset the server")
	b.press(kb.Enter)
	b.waitText("notice", "Reset: the next call dials one at once.")
	require.Equal(t, loads, b.loads())

	b.open(s.URL)
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS("#servers tr:nth-child(2) button"))))
	b.waitText("notice", "Reset: the next call dials two at once.")
}

func TestPageWithoutActionsHasAndTakesNone(t *testing.T) {
	s := start(t, supervisor.Config{}, debug.Config{})
	call(t, s, "one", "a")
	b := browse(t, s, "session?server=one&scope=a", 1280)
	require.Zero(t, eval[int](b, `document.querySelectorAll("form").length`))
	reply, err := http.PostForm(s.URL+"close-session", url.Values{"server": {"one"}, "scope": {"a"}})
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	require.Equal(t, http.StatusNotFound, reply.StatusCode)
	call(t, s, "one", "a")
	b.waitText("facts", "Generation 1")
}

func TestFormOfAnotherSiteIsRefused(t *testing.T) {
	s := start(t, supervisor.Config{}, debug.Config{Actions: true})
	call(t, s, "one", "a")
	evil := start(t, supervisor.Config{}, debug.Config{}) // any page of another origin
	b := browse(t, evil, "", 1280)
	b.origin = strings.TrimSuffix(s.URL, site.Path)
	// Its policy forbids this form, so that the form is sent by a page without a policy.
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Navigate("about:blank")))
	eval[bool](b, fmt.Sprintf(`document.body.innerHTML = '<form method=post action="%sclose-session"><input name=server value=one><input name=scope value=a></form>', document.forms[0].submit(), true`, s.URL))
	b.wait(`document.body.innerText.includes("cross-origin request detected")`)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, wrong := range b.wrong { // the status 403, and the icon of a page that was left
		require.Regexp(t, "log: Failed to load resource|icon", wrong)
	}
	b.wrong = nil
	snap, err := s.Supervisor.Client().Inspect(t.Context())
	require.NoError(t, err)
	require.Len(t, snap.Sessions, 1)
	require.Equal(t, uint64(1), snap.Sessions[0].Generation)
}

func TestNamesThatAreAttacksDoNothing(t *testing.T) {
	s := start(t, supervisor.Config{Tenant: supervisor.ScopePrefix("/")}, debug.Config{Actions: true})
	b := browse(t, s, "", 1280)
	scopes := []string{
		`<script>document.title = "attacked"</script>`, `<img src=x onerror="document.title='attacked'">`, `"><svg onload="alert(1)">`,
		`javascript:alert(1)`, `<iframe src="https://evil.example.com"></iframe>`, "\u202egnp.exe",
	}
	for _, scope := range scopes {
		call(t, s, "one", scope)
	}
	for _, scope := range scopes {
		shown := strings.ReplaceAll(scope, "\u202e", "‹U+202E›")
		b.waitText("sessions", shown)
		b.waitText("events", shown)
	}
	require.Zero(t, eval[int](b, `document.querySelectorAll("main img, main iframe, main script, main [onload], main [onerror]").length`))
	for i, scope := range scopes {
		b.open(s.URL + "session?" + url.Values{"server": {"one"}, "scope": {scope}}.Encode())
		b.waitText("facts", "ready")
		require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS("summary"))))
		require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS("[action=close-session] button"))))
		b.waitText("notice", "Closed 1 session: "+strings.ReplaceAll(scope, "\u202e", "‹U+202E›"))
		require.NotEqual(t, "attacked", eval[string](b, "document.title"), i)
	}
}

func TestPageWorksWithoutScripts(t *testing.T) {
	s := start(t, supervisor.Config{}, debug.Config{Actions: true})
	require.NoError(t, s.Open(t.Context(), 3, func(i int) string { return fmt.Sprint("scope-", i) }))
	call(t, s, "one", "scope-1")
	b := browse(t, s, "", 1280)
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	require.NoError(t, err)
	click := func(selector string) {
		require.NoError(t, chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(selector))))
	}
	eventually := func(selector, part string) {
		require.Eventually(t, func() bool {
			text, err := chromedp.Run(b.ctx, chromedp.Text(chromedp.CSS(selector)))
			return err == nil && strings.Contains(text, part) // an error: another page comes
		}, limit, 50*time.Millisecond, part)
	}
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Navigate(s.URL)))
	eventually("#live", "Snapshot")
	eventually("#range", "1–6 of 6 sessions")
	click("th[data-key=calls] a")
	eventually("#sessions tbody tr", "scope-1")
	require.NoError(t, chromedp.Do(b.ctx, chromedp.SendKeys(chromedp.CSS("[name=q]"), "scope-2")))
	click("#filter button")
	eventually("#range", "1–2 of 2 sessions that match")
	click("#sessions tbody tr a")
	eventually("h1", "scope-2")
	click("summary")
	click("[action=close-session] button")
	eventually("main", "Closed 1 session: scope-2 on one.")
	click("main a")
	eventually("h1", "scope-2")
}

func TestPageIsAccessible(t *testing.T) {
	type tab struct {
		ID string `json:"tab_id"`
	}
	tabs := mcp.NewServer(&mcp.Implementation{Name: "tabs", Version: "1"}, nil)
	mcp.AddTool(tabs, &mcp.Tool{Name: "open_tab"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, tab, error) {
		return nil, tab{"1"}, nil
	})
	closing := func(err error) {
		mcp.AddTool(tabs, &mcp.Tool{Name: "close_tab"}, func(context.Context, *mcp.CallToolRequest, tab) (*mcp.CallToolResult, any, error) {
			return nil, nil, err
		})
	}
	closing(errors.New("it has unsaved changes"))
	s := start(t, supervisor.Config{
		Tenant: supervisor.ScopePrefix("/"), MaxSessions: 300, CallTimeout: 10 * time.Minute,
		Servers: []supervisor.Server{{Name: "tabs", InMemory: tabs, Handles: []mcpbridge.Handle{{Mint: "open_tab", Path: "tab_id", Release: "close_tab", Max: 4}}}},
	}, debug.Config{Actions: true})
	t.Cleanup(func() { closing(nil) }) // before the site is closed
	_, err := s.Supervisor.Client().CallTool(t.Context(), "tabs", "acme/gone", &mcp.CallToolParams{Name: "open_tab"})
	require.NoError(t, err)
	_, err = s.Supervisor.Client().ReleaseHandles(t.Context(), "acme/gone")
	require.NoError(t, err)
	require.NoError(t, s.Open(t.Context(), 60, func(i int) string { return fmt.Sprintf("acme/conversation-%03d", i) }))
	s.Servers["one"].Expire(faults.Expiries()[0])
	require.NoError(t, s.Open(t.Context(), 20, func(i int) string { return fmt.Sprintf("acme/conversation-%03d", i) }))
	s.Servers["two"].Stop()
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	defer func() {
		cancel()
		calls.Wait()
		require.NoError(t, s.Servers["two"].Start()) // so that its sessions can be closed
	}()
	for i := range 5 {
		calls.Go(func() { _ = s.Call(ctx, "two", fmt.Sprintf("acme/new-%d", i), "count/ro") })
	}
	for _, width := range []int{1280, 360} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprint(scheme, width), func(t *testing.T) {
				b := browse(t, s, "?sort=state", width, &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
				b.waitText("sessions", "waiting retry")
				b.waitText("servers", "1 left")
				b.waitText("servers", "1 × close_tab has returned an error")
				for _, path := range []string{"?sort=state", "?page=2", "session?server=one&scope=acme/conversation-001", "session?server=two&scope=acme/new-1", "session?server=one&scope=none"} {
					b.open(s.URL + path)
					require.Empty(t, b.axe(), path)
					require.LessOrEqual(t, eval[int](b, "document.documentElement.scrollWidth"), width, "%s is wider than the window", path)
					require.Zero(t, eval[int](b, "document.getAnimations().length"))
				}
			})
		}
	}
}

func TestManySessionsWhileServersAreKilled(t *testing.T) {
	for _, n := range []int{20, 1000, 10_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := start(t, supervisor.Config{MaxSessions: n + 100, MaxDials: 64, CallTimeout: 2 * time.Minute, ConnectTimeout: 2 * time.Minute, CloseTimeout: time.Minute}, debug.Config{})
			scope := func(i int) string { return fmt.Sprintf("conversation-%05d", i) }
			require.NoError(t, s.Open(t.Context(), n/2, scope))
			b := browse(t, s, "", 1280)
			b.waitText("range", fmt.Sprintf("1–%d of %s sessions", min(n, 100), thousands(n)))
			loads := b.loads()

			ctx, cancel := context.WithCancel(t.Context())
			var calls sync.WaitGroup
			for i := range 20 {
				calls.Go(func() {
					for ctx.Err() == nil {
						_ = s.Call(ctx, []string{"one", "two"}[i%2], scope(i%(n/2)), "count/ro")
					}
				})
			}
			for range 3 {
				for _, server := range []string{"one", "two"} {
					require.NoError(t, s.Servers[server].Restart())
					b.wait(`document.getElementById("live").textContent === "Live"`)
				}
			}
			b.wait(`[...document.querySelectorAll(".counters div")].some((c) => /^Expired\s+[1-9]/.test(c.innerText) || /^Lost\s+[1-9]/.test(c.innerText))`)
			require.NoError(t, chromedp.Do(b.ctx, chromedp.Focus(chromedp.CSS("[name=q]"))))
			began := time.Now()
			b.press("n-00007")
			b.waitText("range", "1–2 of 2 sessions that match")
			t.Logf("%d sessions: the filter took %v", n, time.Since(began).Round(time.Millisecond))
			b.wait(`/conversation-00007\s+two\s+ready\s+[2-9]/.test(document.getElementById("sessions").innerText)`)
			cancel()
			calls.Wait()
			require.Equal(t, "Live", b.text("live"))
			require.Equal(t, loads, b.loads())
		})
	}
}

// thousands returns a number as the page shows it.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
