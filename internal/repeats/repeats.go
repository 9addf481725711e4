// Package repeats recognizes a caller that makes the same call with the same result again and again.
package repeats

import (
	"fmt"
	"reflect"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/clock"
	"github.com/mcpactor/mcpactor/messages"
)

// pause ends a row of identical calls.
const pause = time.Minute

// Row is a row of identical calls with identical results. The zero value is an empty one. It is not safe for use by several goroutines.
type Row struct {
	digest string              // of the call that began last
	result *mcp.CallToolResult // of the last call of the row that has ended
	length int
	ended  time.Time // when it did
}

// Begin notes that a call with a digest wants to begin. If the row has as many calls as are allowed, it returns why the call may not, and the
// time until it may. Any other call begins a new row, and so does a pause.
func (r *Row) Begin(digest string, most int, now time.Time) (why string, retryAfter time.Duration) {
	if digest != r.digest || now.Sub(r.ended) >= pause && r.length > 0 {
		*r = Row{digest: digest}
	}
	if r.length < most {
		return "", 0
	}
	until := r.ended.Add(pause)
	return fmt.Sprintf("this call has had the same result %d times in a row, and may be made again at %s: do something else", r.length, clock.Text(until)), until.Sub(now)
}

// End notes the result of a call with a digest. The result is read-only from then on.
func (r *Row) End(digest string, result *mcp.CallToolResult, now time.Time) {
	switch {
	case digest != r.digest: // another call has begun meanwhile
		return
	case r.result != nil && isSame(r.result, result):
		r.length++
	default:
		r.length = 1
	}
	r.result, r.ended = result, now
}

// Fail notes the failure of a call, if it is an answer of the server.
func (r *Row) Fail(digest string, f *messages.Failure, now time.Time) {
	if f.Code == messages.CodeInvalid || f.Code == messages.CodeServerError {
		r.End(digest, &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: f.Detail}}}, now)
	}
}

// isSame reports whether two results say the same. Texts of different lengths are different without a look at them.
func isSame(one, other *mcp.CallToolResult) bool {
	return one.IsError == other.IsError && reflect.DeepEqual(one.Content, other.Content) && reflect.DeepEqual(one.StructuredContent, other.StructuredContent)
}
