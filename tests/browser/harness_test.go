package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/debug"
	"github.com/mcpactor/mcpactor/tests/browser/internal/site"
)

// limit is how long a test waits for what must come.
const limit = time.Minute

// start starts a site with the servers "one" and "two".
func start(t *testing.T, cfg supervisor.Config, page debug.Config) *site.Site {
	t.Helper()
	s, err := site.Start(cfg, page, "one", "two")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// tab is a tab of Chromium. At the end of the test it has written nothing to the console,
// requested nothing from elsewhere, and shown no dialog.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu     sync.Mutex
	wrong  []string
	reload int // how many documents were loaded
}

// browse opens a page of a site.
func browse(t *testing.T, s *site.Site, path string, width int, features ...*emulation.MediaFeature) *tab {
	t.Helper()
	b := &tab{t: t, origin: strings.TrimSuffix(s.URL, site.Path)}
	ctx, cancel, err := site.Browser(width, 900)
	require.NoError(t, err)
	t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(stop)
	b.ctx = ctx
	require.NoError(t, chromedp.Listen(ctx, b.see))
	_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(int64(width), 900)))
	_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
	require.NoError(t, err)
	b.open(s.URL + path)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		require.Empty(t, b.wrong)
	})
	return b
}

// see notes what a page must not do.
func (b *tab) see(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wrong := func(format string, args ...any) { b.wrong = append(b.wrong, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		wrong("console.%s: %v", e.Type, e.Args)
	case *runtime.EventExceptionThrown:
		wrong("exception: %s", e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		wrong("log: %s (%s)", e.Entry.Text, e.Entry.URL)
	case *page.EventJavascriptDialogOpening:
		wrong("dialog: %s", e.Message)
	case *network.EventRequestWillBeSent:
		if to, err := url.Parse(e.Request.URL); err != nil || to.Scheme+"://"+to.Host != b.origin {
			wrong("request: %s", e.Request.URL)
		}
		if e.Type == network.ResourceTypeDocument {
			b.reload++
		}
	}
}

// open opens an address, and waits until it is updated live.
func (b *tab) open(address string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.Navigate(address)))
	b.wait(`document.getElementById("live").textContent === "Live"`)
}

// loads returns how many documents were loaded.
func (b *tab) loads() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reload
}

// wait waits until an expression is true. It cannot be evaluated while another page comes.
func (b *tab) wait(expression string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		holds, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		return err == nil && holds
	}, limit, 50*time.Millisecond, expression)
}

// waitText waits until an element contains a text, whatever its spaces.
func (b *tab) waitText(id, text string) {
	b.t.Helper()
	deadline := time.Now().Add(limit)
	for !strings.Contains(b.text(id), text) {
		require.True(b.t, time.Now().Before(deadline), "%s: there is no %q in %q", id, text, b.text(id))
		b.wait("true")
	}
}

// text returns the text of an element.
func (b *tab) text(id string) string {
	b.t.Helper()
	return strings.Join(strings.Fields(eval[string](b, `document.getElementById(`+strconv.Quote(id)+`).innerText`)), " ")
}

// press presses keys.
func (b *tab) press(keys string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.KeyEvent(keys)))
}

// focused returns the text or the name of the element that has the focus.
func (b *tab) focused() string {
	b.t.Helper()
	return eval[string](b, `document.activeElement.name || document.activeElement.innerText.trim()`)
}

// eval evaluates an expression in the page.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, expression)
	return value
}

// axe returns the serious and critical violations that axe-core finds.
func (b *tab) axe() (violations []string) {
	b.t.Helper()
	source, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	require.NoError(b.t, err, "run tests/browser/install")
	eval[bool](b, string(source)+"; true")
	checked := eval[struct {
		Violations []struct {
			ID, Impact, Help string
			Nodes            []struct{ HTML, FailureSummary string }
		}
		Passes []struct{ ID string }
	}](b, `axe.run(document, {resultTypes: ["violations", "passes"]})`)
	require.Greater(b.t, len(checked.Passes), 15, "axe-core has checked too little")
	for _, v := range checked.Violations {
		if v.Impact == "serious" || v.Impact == "critical" {
			violations = append(violations, fmt.Sprintf("%s (%s): %v", v.ID, v.Help, v.Nodes))
		} else {
			b.t.Logf("%s: %s (%s): %v", v.Impact, v.ID, v.Help, v.Nodes)
		}
	}
	return violations
}
