package config

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// expressible reports whether a file can have a value of the type of a field.
func expressible(field reflect.StructField) bool {
	return slices.Contains([]reflect.Type{
		reflect.TypeFor[string](), reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[time.Duration](),
		reflect.TypeFor[[]string](), reflect.TypeFor[map[string]string](), reflect.TypeFor[map[string]any](), reflect.TypeFor[[]mcpbridge.Bound](), reflect.TypeFor[[]mcpbridge.Handle](),
	}, field.Type)
}

// H-H: a new field of a server or of the supervisor needs a key in entry.fields or
// File.settings.
func TestEveryFieldThatAFileCanExpressHasAKey(t *testing.T) {
	e, f, h := &entry{}, &File{}, &mcpbridge.Handle{}
	targets := map[any]bool{}
	for _, fields := range []map[string]any{e.fields(), limits(&e.server.Limits), handle(h), f.settings(new(bool), new(string))} {
		for _, target := range fields {
			targets[target] = true
		}
	}
	assembled := []string{ // set from several keys, from the name of the server, or by programs
		"Name", "Command", "Args", "Env", "URL", "Transport", "PerKeyID", "Disabled", "Allow", "Deny", "Metadata", "Verbatim",
	}
	for _, value := range []any{&e.server, &e.server.Limits, &e.tools, &f.Supervisor, h} {
		value := reflect.ValueOf(value).Elem()
		for i := range value.NumField() {
			field := value.Type().Field(i)
			if !expressible(field) || slices.Contains(assembled, field.Name) {
				continue
			}
			require.True(t, targets[value.Field(i).Addr().Interface()], "%s.%s has no key", value.Type(), field.Name)
		}
	}
	require.Contains(t, e.fields(), "setup")
}

func TestEveryKeyIsInTheDocs(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var named []string
	for _, head := range regexp.MustCompile(`(?m)^//\t([\w, ]+):`).FindAllStringSubmatch(string(doc), -1) {
		named = append(named, strings.Split(head[1], ", ")...)
	}
	for key := range (&entry{}).fields() {
		require.Contains(t, named, key)
	}
	for _, fields := range []map[string]any{limits(&mcpbridge.Limits{}), handle(&mcpbridge.Handle{}), (&File{}).settings(new(bool), new(string))} {
		for key := range fields {
			require.Regexp(t, `(?m)^//\t.*\b`+key+`\b`, string(doc))
		}
	}
	page, err := os.ReadFile("../docs/configuration.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Files\n")
	require.True(t, found)
	for _, client := range []string{"Claude Desktop", "Claude Code", "Cursor", "VS Code", "Windsurf", "Gemini CLI", "opencode", "Zed", "LibreChat"} {
		require.Regexp(t, `(?m)^\| `+client+` \|`, section)
	}
}
