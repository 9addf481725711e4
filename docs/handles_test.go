package docs_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

func TestEveryFieldOfAHandleIsOnItsPage(t *testing.T) {
	page := read(t, "handles.md")
	for _, field := range reflect.VisibleFields(reflect.TypeFor[mcpbridge.Handle]()) {
		require.Regexp(t, "(?m)^\\| [^|]*`"+strings.ToLower(field.Name)+"`[^|]* \\|", page)
	}
}

// The texts are those that the servers of these versions return; make real runs the servers.
func TestDeclarationsOfThePageFitTheirServers(t *testing.T) {
	block := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(read(t, "handles.md"))
	require.NotNil(t, block)
	file, err := config.Loader{}.Parse([]byte(block[1]))
	require.NoError(t, err)
	require.Empty(t, file.Warnings)
	samples := map[string]struct {
		minted, handle, listed string
		handles                []string
		gone, ended            string
		notNew                 []string // results of mints that do not say which one is new
	}{
		"commander": {
			"Process started with PID 16734 (shell: /bin/bash)\nInitial output:\n\n⏳ Process is running. Use read_process_output to get more output.", "16734",
			"PID: 16734, Blocked: true, Runtime: 1s\nPID: 99, Blocked: false, Runtime: 12s",
			[]string{"16734", "99"},
			"No active session found for PID 999999", "Successfully initiated termination of session 16734",
			[]string{"Error: Command not allowed: echo Process started with PID 1"},
		},
		"chrome": {
			"## Pages\n1: about:blank\n2: [selected] (http://a.example/)\n3: about:blank [selected] isolatedContext=x", "3",
			"## Pages\n1: about:blank [selected]\n3: A page (http://a.example/)",
			[]string{"1", "3"},
			"No page found", "## Pages\n1: about:blank [selected]",
			// It was opened in the background, or somebody else has opened one meanwhile.
			[]string{"## Pages\n1: about:blank [selected]\n2: about:blank", "## Pages\n1: a\n2: b [selected]\n3: c\n## Extension Pages\n4: d"},
		},
	}
	require.Len(t, file.Supervisor.Servers, len(samples))
	for _, srv := range file.Supervisor.Servers {
		require.Len(t, srv.Handles, 1)
		h, s := srv.Handles[0], samples[srv.Name]
		require.Equal(t, s.handle, regexp.MustCompile(h.Pattern).FindStringSubmatch(s.minted)[1])
		var handles []string
		for _, found := range regexp.MustCompile(h.Listed).FindAllStringSubmatch(s.listed, -1) {
			handles = append(handles, found[1])
		}
		require.Equal(t, s.handles, handles)
		require.Regexp(t, h.Gone, s.gone)
		require.NotRegexp(t, h.Gone, s.ended)
		for _, text := range s.notNew {
			require.NotRegexp(t, h.Pattern, text)
		}
	}
}
