package toolset

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/definition"
)

func TestEveryFieldAndMethodIsInTheDocs(t *testing.T) {
	docs, err := os.ReadFile("../docs/tools.md")
	require.NoError(t, err)
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Config](), reflect.TypeFor[Filter](), reflect.TypeFor[DefinitionChanged](), reflect.TypeFor[Policy](), reflect.TypeFor[Decision](), reflect.TypeFor[PoolConfig](),
	} {
		for i := range typ.NumField() {
			if name := typ.Field(i).Name; name != "Servers" && name != "Verdict" && typ.Field(i).IsExported() {
				require.Contains(t, string(docs), "`"+name+"`", name)
			}
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[*Set](), reflect.TypeFor[Output]()} {
		for i := range typ.NumMethod() {
			if name := typ.Method(i).Name; name != "Tool" {
				require.True(t, strings.Contains(string(docs), "`"+name+"`"), name)
			}
		}
	}
	for _, name := range append(definition.ToolFields[:], string(ToolAdded), string(ToolRemoved), string(ToolRedefined), FindTool, ReadTool, string(Append), string(Freeze), string(Follow)) {
		require.Contains(t, string(docs), "`"+name+"`")
	}
	failures := string(docs)[strings.Index(string(docs), "\n## Failures\n"):]
	for code := range explanations {
		require.Regexp(t, "(?m)^\\|.*`"+string(code)+"`.*\\|", failures)
	}
	for _, part := range []string{"text", "image", "audio", "link", "resource", "structured", "other"} {
		require.Regexp(t, `(?m)^\|.*\b`+part+`\b`, string(docs))
	}
}
