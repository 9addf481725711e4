package mcpbridge_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

func TestArgumentOfAHandleIsTheLastPartOfItsPath(t *testing.T) {
	for want, h := range map[string]mcpbridge.Handle{
		"browser_id": {Path: "browser_id"},
		"id":         {Path: "pages.0.id"},
		"pid":        {Path: "process.id", Argument: "pid"},
		"":           {Pattern: "(.)"},
	} {
		require.Equal(t, want, h.ArgumentName())
	}
}

func TestWrongHandleIsNamed(t *testing.T) {
	good := mcpbridge.Handle{Mint: "open", Path: "id", Release: "close"}
	require.NoError(t, good.Validate(), "the least that is declared")
	all := mcpbridge.Handle{
		Mint: "open", Pattern: "id (.+)", Release: "close", Argument: "id", List: "list", Listed: "(.+)", Gone: "none", Full: "many", Max: 1 << 24,
		Idle: time.Hour, Own: true, Unique: true, Bound: true,
	}
	require.NoError(t, all.Validate())
	for _, test := range []struct {
		want   string
		change func(*mcpbridge.Handle)
	}{
		{"mint: is empty", func(h *mcpbridge.Handle) { h.Mint = "" }},
		{"release: is empty: without it nothing can be released", func(h *mcpbridge.Handle) { h.Release = "" }},
		{"release: is the tool of mint", func(h *mcpbridge.Handle) { h.Release = "open" }},
		{"path: set either path or pattern, which say where the handle is in the result of mint", func(h *mcpbridge.Handle) { h.Path = "" }},
		{"path: set either path or pattern, which say where the handle is in the result of mint", func(h *mcpbridge.Handle) { h.Pattern = "(.)" }},
		{`path: "a..id" has an empty part: write names and indices with dots between them`, func(h *mcpbridge.Handle) { h.Path = "a..id" }},
		{`path: ".id" has an empty part: write names and indices with dots between them`, func(h *mcpbridge.Handle) { h.Path = ".id" }},
		{`path: "ids." has an empty part: write names and indices with dots between them`, func(h *mcpbridge.Handle) { h.Path = "ids." }},
		{"argument: is empty, and only a path has a name to take for it", func(h *mcpbridge.Handle) { h.Path, h.Pattern = "", "(.)" }},
		{"argument: is empty, and path ends with an index", func(h *mcpbridge.Handle) { h.Path = "ids.0" }},
		{"list: needs listed, and listed needs list", func(h *mcpbridge.Handle) { h.List = "list" }},
		{"list: needs listed, and listed needs list", func(h *mcpbridge.Handle) { h.Listed = "(.)" }},
		{"list: is the tool of mint or release", func(h *mcpbridge.Handle) { h.List, h.Listed = "open", "(.)" }},
		{"list: is the tool of mint or release", func(h *mcpbridge.Handle) { h.List, h.Listed = "close", "(.)" }},
		{"own: is for a list", func(h *mcpbridge.Handle) { h.Own = true }},
		{"max: -1 is negative: 0 is no bound", func(h *mcpbridge.Handle) { h.Max = -1 }},
		{"max: 16777217 is more than 16777216: 0 is no bound", func(h *mcpbridge.Handle) { h.Max = 1<<24 + 1 }},
		{"idle: -1s is negative: 0 is never", func(h *mcpbridge.Handle) { h.Idle = -time.Second }},
		{"pattern: \"(\" is not a regular expression: error parsing regexp: missing closing ): `(`", func(h *mcpbridge.Handle) { h.Path, h.Pattern, h.Argument = "", "(", "id" }},
		{`pattern: "id" has no group: the first group is the handle`, func(h *mcpbridge.Handle) { h.Path, h.Pattern, h.Argument = "", "id", "id" }},
		{`listed: "id" has no group: the first group is the handle`, func(h *mcpbridge.Handle) { h.List, h.Listed = "list", "id" }},
		{"gone: \"*\" is not a regular expression: error parsing regexp: missing argument to repetition operator: `*`", func(h *mcpbridge.Handle) { h.Gone = "*" }},
		{`gone: ".*" matches any text, or none`, func(h *mcpbridge.Handle) { h.Gone = ".*" }},
		{`full: "many|" matches any text, or none`, func(h *mcpbridge.Handle) { h.Full = "many|" }},
	} {
		h := good
		test.change(&h)
		require.EqualError(t, h.Validate(), test.want)
		srv := mcpbridge.Server{Name: "s", Command: "x", Handles: []mcpbridge.Handle{all, h}}
		require.EqualError(t, srv.Validate(), "handles[1]."+test.want)
	}
}

func TestHandlesOfAServerAreToldApart(t *testing.T) {
	browser := mcpbridge.Handle{Mint: "open_browser", Path: "id", Release: "close_browser", List: "list", Listed: "(.)"}
	page := mcpbridge.Handle{Mint: "open_page", Path: "page", Release: "close_page", List: "list", Listed: "(.)"}
	for _, test := range []struct {
		name, want string
		change     func(browser, page *mcpbridge.Handle)
	}{
		{"a list of both", "", func(_, _ *mcpbridge.Handle) {}},
		{"one tool releases both, by two arguments", "", func(_, page *mcpbridge.Handle) { page.Release = "close_browser" }},
		{"two tools mint unique ids", "", func(browser, page *mcpbridge.Handle) {
			browser.Unique, page.Unique, page.Path, page.Release = true, true, "id", "close_browser"
		}},
		{"one tool mints both", `handles[1].mint: "open_browser" is that of handles[0]`, func(_, page *mcpbridge.Handle) { page.Mint = "open_browser" }},
		{"an id may be a browser or a page", `handles[1].argument: "id" is that of handles[0]: set unique for both, if no two handles are ever the same`, func(browser, page *mcpbridge.Handle) {
			browser.Unique, page.Argument = true, "id"
		}},
		{"the id of a browser may come again for a page", `handles[1].argument: "id" is that of handles[0]: set unique for both, if no two handles are ever the same`, func(_, page *mcpbridge.Handle) {
			page.Unique, page.Path, page.Release = true, "id", "close_browser"
		}},
		{"a page in the list would be taken for a lost browser", `handles[1].list: "list" is that of handles[0]: own is for a list of one kind`, func(browser, _ *mcpbridge.Handle) { browser.Own = true }},
		{"the other way round", `handles[1].list: "list" is that of handles[0]: own is for a list of one kind`, func(_, page *mcpbridge.Handle) { page.Own = true }},
		{"lists of their own", "", func(browser, page *mcpbridge.Handle) { browser.Own, page.Own, page.List = true, true, "list_pages" }},
	} {
		browser, page := browser, page
		test.change(&browser, &page)
		srv := mcpbridge.Server{Name: "s", Command: "x", Handles: []mcpbridge.Handle{browser, page}}
		if test.want == "" {
			require.NoError(t, srv.Validate(), test.name)
			continue
		}
		require.EqualError(t, srv.Validate(), test.want, test.name)
	}
}

func TestHandlesAreADifferenceBetweenServersAndNotBetweenKeys(t *testing.T) {
	one := mcpbridge.Server{Name: "s", Command: "x", Handles: []mcpbridge.Handle{{Mint: "open", Path: "id", Release: "close"}}}
	two := one
	require.True(t, one.Same(&two))
	two.Handles = nil
	require.False(t, one.Same(&two))

	one.PerKey = func(_ context.Context, key messages.Key) (mcpbridge.Server, error) {
		changed := mcpbridge.Server{Command: "y"}
		if key.Scope == "other" {
			changed.Handles = []mcpbridge.Handle{{Mint: "new", Path: "id", Release: "close"}}
		}
		return changed, nil
	}
	of, err := one.ForKey(t.Context(), messages.Key{Server: "s", Scope: "any"})
	require.NoError(t, err)
	require.Equal(t, one.Handles, of.Handles)
	_, err = one.ForKey(t.Context(), messages.Key{Server: "s", Scope: "other"})
	require.ErrorContains(t, err, "handles: is different from that of the server, but must not depend on the key")
}
