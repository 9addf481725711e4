package toolset_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// resultOf returns a result with contents: texts, or data.
func resultOf(contents ...any) *messages.ToolResult {
	result := &mcp.CallToolResult{}
	for _, content := range contents {
		switch c := content.(type) {
		case string:
			result.Content = append(result.Content, &mcp.TextContent{Text: c})
		case mcp.Content:
			result.Content = append(result.Content, c)
		}
	}
	return &messages.ToolResult{Result: result}
}

var leftOut = regexp.MustCompile(`\[(\d+) of (\d+) bytes are left out here\. To read them, call read_result with (\{.*\})\.\]`)

// readRest reads what was left out of an output, and returns the whole text.
func readRest(ctx context.Context, w *world, out toolset.Output, most int) string {
	w.Helper()
	text := out.Text()
	found := leftOut.FindStringSubmatchIndex(text)
	require.NotNil(w, found, text)
	head, tail := strings.TrimSuffix(text[:found[0]], "\n"), strings.TrimPrefix(text[found[1]:], "\n")
	var missing, all int
	_, err := fmt.Sscan(text[found[2]:found[3]]+" "+text[found[4]:found[5]], &missing, &all)
	require.NoError(w, err)
	var at struct {
		ID     string `json:"id"`
		Offset int    `json:"offset"`
	}
	require.NoError(w, json.Unmarshal([]byte(text[found[6]:found[7]]), &at))
	rest := ""
	for len(rest) < missing {
		result, err := w.Call(ctx, toolset.ReadTool, map[string]any{"id": at.ID, "offset": at.Offset + len(rest)})
		require.NoError(w, err)
		part := w.Outcome(result, nil).Text()
		require.LessOrEqual(w, len(part), most)
		require.True(w, utf8.ValidString(part))
		end := strings.LastIndex(part, "\n[")
		require.Positive(w, end)
		rest += part[:end]
	}
	whole := head
	if at.Offset > len(head) { // a line feed between two parts
		whole += "\n"
	}
	whole += rest[:missing]
	if len(whole)+len(tail) < all {
		whole += "\n"
	}
	require.Len(w, whole+tail, all)
	return whole + tail
}

func TestResultThatIsTooLongIsCutAndReadWithATool(t *testing.T) {
	const most = 2000
	long := strings.Repeat("äöü€😀 abc ", 2000)
	for name, contents := range map[string][]any{
		"one text":   {long},
		"many texts": {"first", long, "between", long, "last"},
		"small ones": slicesOf("a line of text", 1000),
		"empty ones": slicesOf("", 5000),
		"bytes":      slicesOf("x", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			imagine(t, toolset.Config{MaxText: most}, func(ctx context.Context, w *world) {
				require.Equal(w, "one__a one__b two__c", w.tools(ctx))
				result := resultOf(contents...)
				whole := toolset.Convert(result.Result).Text()
				out := w.Outcome(result, nil)
				require.LessOrEqual(w, len(out.Text()), most)
				require.Greater(w, len(out.Text()), most/2)
				require.True(w, utf8.ValidString(out.Text()))
				require.Equal(w, whole, readRest(ctx, w, out, most))
				require.Equal(w, whole, toolset.Convert(result.Result).Text(), "the Go value stays whole")
				require.Equal(w, "one__a one__b two__c read_result", w.tools(ctx))
				set, err := w.Select(ctx, "a", 1)
				require.NoError(w, err)
				require.Equal(w, "find_tools one__a read_result", names(set))
			})
		})
	}
}

func slicesOf(text string, n int) (all []any) {
	for range n {
		all = append(all, text)
	}
	return all
}

func TestResultThatFitsIsNotCut(t *testing.T) {
	for _, most := range []int{0, 5000, -1} {
		imagine(t, toolset.Config{MaxText: most}, func(_ context.Context, w *world) {
			require.Equal(w, strings.Repeat("x", 5000), w.Outcome(resultOf(strings.Repeat("x", 5000)), nil).Text())
		})
	}
}

func TestDataCounts(t *testing.T) {
	image := func(size int) mcp.Content { return &mcp.ImageContent{MIMEType: "image/png", Data: make([]byte, size)} }
	blob := &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///b", Blob: make([]byte, 5000)}}
	imagine(t, toolset.Config{MaxText: 2000, MaxData: 10000}, func(_ context.Context, w *world) {
		result := resultOf(image(4000), blob, image(1001), &mcp.AudioContent{MIMEType: "audio/wav", Data: make([]byte, 900)}, image(10), strings.Repeat("x", 5000), image(9))
		out := w.Outcome(result, nil)
		require.Equal(w, "[image image/png, 4000 bytes]\n[resource file:///b, 5000 bytes]\n[image image/png, 1001 bytes]\n[The data is left out because of its size.]",
			strings.Join(strings.Split(out.Text(), "\n")[:4], "\n"))
		kept := 0
		for _, part := range out.Parts {
			if part.Content != nil {
				kept++
			}
		}
		require.Equal(w, 2, kept, "each counts 1 KiB at least")
		require.Less(w, len(out.Anthropic()), 10000, "but for the image, which is in base64")
		require.Len(w, result.Result.Content, 7)
		require.Len(w, result.Result.Content[2].(*mcp.ImageContent).Data, 1001)

		out = w.Outcome(resultOf(strings.Repeat("x", 5000), image(9), strings.Repeat("y", 5000)), nil)
		require.Contains(w, out.Text(), "[image image/png, 9 bytes]", "an image stays where text is left out")
		require.LessOrEqual(w, len(out.Text()), 2100)
		long := resultOf(&mcp.ImageContent{MIMEType: strings.Repeat("x", 5000), Data: []byte{1}})
		require.LessOrEqual(w, len(w.Outcome(long, nil).Text()), 2000)
	})
	imagine(t, toolset.Config{MaxData: -1}, func(_ context.Context, w *world) {
		require.Equal(w, image(9<<20), w.Outcome(resultOf(image(9<<20)), nil).Parts[0].Content)
	})
}

func TestReadingWhatIsNotThereSaysSo(t *testing.T) {
	imagine(t, toolset.Config{MaxText: 1024}, func(ctx context.Context, w *world) {
		for _, arguments := range []any{nil, `[]`, `{"id": 1}`, `{"id": "x", "offset": "y"}`, `{"id": "x", "offset": 1}`} {
			_, err := w.Call(ctx, toolset.ReadTool, arguments)
			require.ErrorIs(w, err, messages.CodeInvalid, "%v", arguments)
		}
		_, err := w.Approve(ctx, toolset.ReadTool, nil)
		require.ErrorIs(w, err, messages.CodeInvalid)
		oldest := leftOut.FindStringSubmatch(w.Outcome(resultOf(strings.Repeat("x", 5000)), nil).Text())[3]
		for range 16 {
			_, err = w.Call(ctx, toolset.ReadTool, oldest)
			require.NoError(w, err)
			w.Outcome(resultOf(strings.Repeat("y", 5000)), nil)
		}
		_, err = w.Call(ctx, toolset.ReadTool, oldest)
		require.ErrorContains(w, err, "is kept any more: call its tool again")
		last := leftOut.FindStringSubmatch(w.Outcome(resultOf(strings.Repeat("z", 20<<20)), nil).Text())[3]
		for _, offset := range []int{-1, 0, 20 << 20, 1 << 40} {
			var at map[string]any
			require.NoError(w, json.Unmarshal([]byte(last), &at))
			at["offset"] = offset
			result, err := w.Call(ctx, toolset.ReadTool, at)
			require.NoError(w, err)
			require.LessOrEqual(w, len(w.Outcome(result, nil).Text()), 1024)
		}
	})
}
