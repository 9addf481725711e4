package exec

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// documentation returns the section "The program mcpactor" of the README or of a page of docs.
func documentation(t *testing.T) string {
	pages, err := filepath.Glob("../../../../docs/*.md")
	require.NoError(t, err)
	heading := regexp.MustCompile(`(?m)^(#+) The program mcpactor$`)
	for _, page := range append(pages, "../../../../README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		if at := heading.FindSubmatchIndex(text); at != nil {
			level, section := string(text[at[2]:at[3]]), string(text[at[1]:])
			section, _, _ = strings.Cut(section, "\n"+level+" ")
			return section
		}
	}
	require.Fail(t, "no page has the heading The program mcpactor")
	return ""
}

// The documentation has the fields of requests, the ops and the events. The fields of
// configuration files are in the documentation of package config.
func TestDocumentationHasAllFieldsOpsEventsAndFlags(t *testing.T) {
	section := documentation(t)
	_, err := parseRequest([]byte(`{"id":1,"no field":1}`))
	_, fields, found := strings.Cut(err.Error(), "the fields are ")
	require.True(t, found)
	names := append(strings.Split(fields, ", "), ops...)
	hump := regexp.MustCompile("([a-z])([A-Z])")
	for _, event := range eventTypes(t) {
		names = append(names, strings.ToLower(hump.ReplaceAllString(event, "${1}_$2")))
	}
	names = append(names, "dropped", "setup", "allow", "deny", "store", "roots")
	for _, name := range names {
		require.Regexp(t, "`[^`]*\\b"+regexp.QuoteMeta(name)+"\\b[^`]*`", section, name)
	}
	for _, flag := range []string{"--config", "--parallel", "--events", "--scope", "--timeout", "--json"} {
		require.Contains(t, section, flag)
	}
}
