package toolset_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// answering is a transport that answers each request with a function.
type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(req *http.Request) (*http.Response, error) { return a(req) }

// withAway runs a scenario with a toolset of servers none of which can be listed.
func withAway(t *testing.T, cfg toolset.Config, scenario func(ctx context.Context, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		server := func(name string, answer answering) mcpbridge.Server {
			return mcpbridge.Server{Name: name, URL: "http://" + name + ".invalid", HTTPClient: &http.Client{Transport: answer}}
		}
		w := &world{T: t, system: newSystem()}
		var err error
		w.sup, err = supervisor.Start(w.system, supervisor.Config{Servers: []mcpbridge.Server{
			server("down", func(*http.Request) (*http.Response, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}),
			server("login", func(req *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: req}, nil
			}),
			server("silent", func(req *http.Request) (*http.Response, error) {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}),
		}})
		require.NoError(t, err)
		defer time.Sleep(3 * time.Second) // until Proto.Actor's throttle of dead letters ends
		defer func() {
			if err := w.sup.Stop(context.Background()); err != nil { // a server that is silent may still open a session
				require.ErrorContains(t, err, "1 sessions could not be closed; silent/")
			}
		}()
		cfg.Servers = []toolset.Filter{{Name: "*"}}
		w.Toolset, err = toolset.New(w.system, w.sup, cfg)
		require.NoError(t, err)
		defer w.Close()
		scenario(t.Context(), w)
	})
}

// The model has the names of a conversation before, and the servers are away at the first listing.
func TestCallOfAToolWhoseServerIsAwayFailsAsTheServerDoes(t *testing.T) {
	for _, cfg := range []toolset.Config{{}, {Policy: &toolset.Policy{}}} {
		withAway(t, cfg, func(ctx context.Context, w *world) {
			fails := func(ctx context.Context, name string) (*messages.Failure, string) {
				w.Helper()
				_, err := w.Call(ctx, name, nil)
				var f *messages.Failure
				require.ErrorAs(w, err, &f)
				require.False(w, f.MayHaveRun)
				require.Error(w, f.Cause)
				told := toolset.Explain(err)
				require.NotContains(w, told, "Correct")
				require.NotContains(w, told, "not valid")
				return f, told
			}
			began := time.Now()
			f, told := fails(ctx, "login__read")
			require.Equal(w, messages.CodeUnauthorized, f.Code)
			require.Equal(w, "login", f.Key.Server)
			require.Equal(w, `Server "login" does not accept the credentials. The tool did not run. Do not try again before the user has logged in or granted access.`, told)
			require.Less(w, time.Since(began), time.Second, "servers that the name does not fit are not waited for")

			f, told = fails(ctx, "down__read")
			require.Equal(w, messages.CodeUnavailable, f.Code)
			require.Contains(w, f.Error(), "connection refused")
			require.Positive(w, f.RetryAfter)
			require.Regexp(w, `^Server "down" cannot be reached\. The tool did not run\. Try again in \d seconds?, or continue without this server\.$`, told)

			f, told = fails(ctx, "silent__read")
			require.Equal(w, messages.CodeDeadline, f.Code)
			require.Equal(w, `The tools of server "silent" could not be listed. The tool did not run. Try again later, or continue without this server.`, told)

			limited, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			f, _ = fails(limited, "down__read")
			require.Equal(w, messages.CodeUnavailable, f.Code)

			set, err := w.Tools(ctx)
			require.NoError(w, err)
			missing := map[string]messages.Code{}
			for _, f := range set.Missing {
				missing[f.Key.Server] = f.Code
			}
			require.Equal(w, map[string]messages.Code{"login": messages.CodeUnauthorized, "down": messages.CodeUnavailable, "silent": messages.CodeDeadline}, missing)
			_, err = w.Call(ctx, "other__read", nil)
			require.EqualError(w, err, `tools/call: invalid: no tool has the name "other__read"`)
		})
	}
}

func TestNameThatIsMisspeltIsFollowedByTheServerIfThatIsAway(t *testing.T) {
	withAway(t, toolset.Config{}, func(ctx context.Context, w *world) {
		for name, want := range map[string]string{
			"dwon__x": "down", "down_x": "down", "Down__x": "down", "slient_read": "silent", "other__x": "", "x": "", "_": "", "": "",
		} {
			_, err := w.Call(ctx, name, nil)
			hint := `: the names of the tools of server "` + want + `" begin with "` + want + `__"`
			require.Equal(w, want != "", strings.HasSuffix(err.Error(), hint), "%v", err)
		}
	})
}

func TestCancelledCallOfAToolWhoseServerIsAwayIsCancelled(t *testing.T) {
	withAway(t, toolset.Config{}, func(ctx context.Context, w *world) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		_, err := w.Call(ctx, "silent__read", nil)
		require.ErrorIs(w, err, messages.CodeCancelled)
	})
}

func TestNameThatIsMisspeltIsFollowedByTheNearestOne(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		w.tools(ctx)
		w.two.mcp.RemoveTools("c")
		w.two.add("search", "list files")
		w.changed("two")
		w.tools(ctx)
		for name, want := range map[string]string{
			"two__serch":     "two__search",
			"two__Search":    "two__search",
			"two__listfiles": toolset.SafeName("two", "list files"),
			"search":         "two__search",
			"seach":          "two__search",
			"tow__search":    "two__search",
			"two__x":         "",
			"one__search":    "",
		} {
			_, err := w.Call(ctx, name, nil)
			require.ErrorIs(w, err, messages.CodeInvalid)
			told := toolset.Explain(err)
			if want == "" {
				require.NotContains(w, told, "did you mean", name)
				continue
			}
			require.ErrorContains(w, err, `no tool has the name "`+name+`": did you mean "`+want+`"?`)
			require.Contains(w, told, `did you mean "`+want+`"?`)
		}
	})
}

func TestCallListsOnlyWhenTheNameIsNotKnown(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		result, err := w.Call(ctx, "two__c", nil)
		require.NoError(w, err)
		require.Equal(w, "c{}", toolset.Convert(result.Result).Text())
		require.Zero(w, w.one.listed(), "the name fits no tool of this server")
		_, err = w.Call(ctx, "one__a", nil)
		require.NoError(w, err)
		w.changed("one")
		_, err = w.Call(ctx, "one__a", nil)
		require.NoError(w, err)
		require.Equal(w, 1, w.one.listed())

		_, err = w.Call(ctx, "one__z", nil)
		require.ErrorIs(w, err, messages.CodeInvalid)
		require.ErrorContains(w, err, `no tool has the name "one__z"`)
		require.Equal(w, 2, w.one.listed())
		_, err = w.Call(ctx, "one__a", "[]")
		require.ErrorIs(w, err, messages.CodeInvalid)
	})
}
