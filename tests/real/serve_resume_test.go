//go:build real

package real

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/tests/faults"
)

// A proxy between a client and mcpactor serve cuts the response of a call. The client resumes it: the call has run once, and the
// client has its result.
func TestResponseThatIsCutReachesTheClient(t *testing.T) {
	after := func(d time.Duration) faults.Fault {
		return func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
			ctx, cancel := context.WithTimeout(r.Context(), d)
			defer cancel()
			next.ServeHTTP(w, r.WithContext(ctx))
			panic(http.ErrAbortHandler)
		}
	}
	for name, cut := range map[string]faults.Fault{
		"in the first moment": after(50 * time.Millisecond), "while the call runs": after(700 * time.Millisecond), "within the answer": faults.CutAnswer(60),
	} {
		for kind, connect := range otherClients {
			if kind == inspector || kind == "go-sdk" || kind == "typescript 2" {
				continue // another client for each call; and protocol 2026-07-28, whose streams cannot be resumed
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				needsClient(t, kind)
				h := newHarness(t)
				file := filepath.Join(h.dir, "ledger")
				to := h.listened(h.serve("s", ledgerInto(file), stdio))
				front, err := faults.Proxy(strings.TrimSuffix(to.url, "/mcp"))
				require.NoError(t, err)
				c := connect(h, target{url: front.URL() + "/mcp"})
				h.atEnd(front.Close) // after the client has left
				said, isError := c.call("write", arguments{"entry": "first", "before": 0, "after": 0})
				require.False(t, isError, said)
				var cuts, resumed atomic.Int32
				front.Inject("tools/call", faults.Times(1, func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
					cuts.Add(1)
					cut(w, r, next)
				}))
				front.Inject("GET", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
					if r.Header.Get("Last-Event-ID") != "" {
						resumed.Add(1)
					}
					next.ServeHTTP(w, r.Request)
				})
				said, isError = c.call("write", arguments{"entry": "second", "before": 1000, "after": 500})
				require.False(t, isError, said)
				require.Contains(t, said, "second")
				require.EqualValues(t, 1, cuts.Load())
				require.Positive(t, resumed.Load())
				written, err := os.ReadFile(file)
				require.NoError(t, err)
				require.Equal(t, "first\nsecond\n", string(written))
			})
		}
	}
}
