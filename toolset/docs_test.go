package toolset

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryGoBlockOfTheDocsIsPartOfAnExample(t *testing.T) {
	docs, err := os.ReadFile("../docs/tools.md")
	require.NoError(t, err)
	examples, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(docs), -1)
	require.Len(t, blocks, 5)
	for _, block := range blocks {
		require.Contains(t, string(examples), block[1])
	}
}

func TestEveryFieldAndMethodIsInTheDocs(t *testing.T) {
	docs, err := os.ReadFile("../docs/tools.md")
	require.NoError(t, err)
	for _, typ := range []reflect.Type{reflect.TypeFor[Config](), reflect.TypeFor[Server]()} {
		for i := range typ.NumField() {
			if name := typ.Field(i).Name; name != "Servers" {
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
	for _, kind := range []Kind{KindText, KindImage, KindAudio, KindLink, KindResource, KindStructured, KindOther} {
		require.Regexp(t, `(?m)^\|.*\b`+string(kind)+`\b`, string(docs))
	}
}
