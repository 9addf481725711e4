package health

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inFakeTime runs a test in a bubble of fake time.
func inFakeTime(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		f(t)
		time.Sleep(3 * time.Second) // synctest: until idle goroutines have ended
	})
}

// start starts a supervisor that the test stops.
func start(t *testing.T, cfg supervisor.Config) *supervisor.Supervisor {
	t.Helper()
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	cfg.Servers = append(cfg.Servers, supervisor.Server{Name: "memory", InMemory: mcp.NewServer(&mcp.Implementation{Name: "m", Version: "1"}, nil)})
	sup, err := supervisor.Start(system, cfg)
	require.NoError(t, err)
	return sup
}

// probe sends a request, and returns the status and the body.
func probe(h http.Handler, target string, header ...string) (status int, body string, answer http.Header) {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header()
}

// noServer is a connection that is refused.
type noServer struct{}

func (noServer) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: io.ErrUnexpectedEOF}
}

func TestServerThatIsDownConcernsTheReadinessOfThoseWhoRequireIt(t *testing.T) {
	inFakeTime(t, func(t *testing.T) {
		const secret = "s3cr3t-s3cr3t"
		sup := start(t, supervisor.Config{FailFast: true, Servers: []supervisor.Server{{
			Name: "search", URL: "https://search.invalid/" + secret, HTTPClient: &http.Client{Transport: noServer{}}, Headers: map[string]string{"X-Key": secret},
		}}})
		defer sup.Stop(context.Background())
		for _, h := range []http.Handler{Live(sup), Ready(sup), Ready(sup, "memory", "search")} {
			status, body, _ := probe(h, "/")
			require.Equal(t, http.StatusOK, status, "no call has needed the server yet")
			require.Equal(t, "ok\n", body)
		}
		_, err := sup.Client().Open(t.Context(), "search", "a")
		require.ErrorIs(t, err, messages.CodeUnavailable)
		since := time.Now().UTC().Format(time.RFC3339)

		for _, h := range []http.Handler{Live(sup), Ready(sup), Ready(sup, "memory")} {
			status, body, _ := probe(h, "/")
			require.Equal(t, http.StatusOK, status)
			require.Contains(t, body, "ok\ndown: search since "+since+": unavailable: ")
			require.NotContains(t, body, secret)
		}
		status, body, _ := probe(Ready(sup, "memory", "search", "mail"), "/?format=json")
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.NotContains(t, body, secret)
		var got report
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		require.Equal(t, []string{"server search is down", "server mail is not configured"}, got.Reasons)
		require.Len(t, got.Down, 1)
		require.Equal(t, "search", got.Down[0].Name)
		require.Equal(t, since, got.Down[0].Since.UTC().Format(time.RFC3339))
		require.Contains(t, got.Down[0].Cause, "unavailable: ")
		require.False(t, got.OK)
	})
}

func TestSupervisorThatStopsIsNotReadyAndAfterwardsNotAlive(t *testing.T) {
	inFakeTime(t, func(t *testing.T) {
		release := make(chan struct{})
		server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
		mcp.AddTool(server, &mcp.Tool{Name: "wait"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
			<-release
			return &mcp.CallToolResult{}, nil, nil
		})
		sup := start(t, supervisor.Config{Servers: []supervisor.Server{{Name: "slow", InMemory: server}}})
		live, ready := Live(sup), Ready(sup)
		go sup.Client().CallTool(context.Background(), "slow", "a", &mcp.CallToolParams{Name: "wait"})
		synctest.Wait()
		stopped := make(chan error)
		go func() { stopped <- sup.Stop(context.Background()) }()
		synctest.Wait()

		status, body, _ := probe(ready, "/")
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Equal(t, "the supervisor is stopping\n", body)
		status, _, _ = probe(live, "/")
		require.Equal(t, http.StatusOK, status)

		close(release)
		require.NoError(t, <-stopped)
		for _, h := range []http.Handler{live, ready} {
			status, body, _ = probe(h, "/")
			require.Equal(t, http.StatusServiceUnavailable, status)
			require.Contains(t, body, "the supervisor has stopped")
		}
	})
}

func TestSupervisorThatWasNotStartedIsNeitherAliveNorReady(t *testing.T) {
	for _, sup := range []*supervisor.Supervisor{nil, {}} {
		for _, h := range []http.Handler{Live(sup), Ready(sup)} {
			status, body, _ := probe(h, "/")
			require.Equal(t, http.StatusServiceUnavailable, status)
			require.Contains(t, body, "the supervisor is not started")
		}
	}
}

func TestSupervisorThatHangsIsNotAliveAfterASecond(t *testing.T) {
	inFakeTime(t, func(t *testing.T) {
		hung, release := make(chan struct{}), make(chan struct{})
		sup := start(t, supervisor.Config{Tenant: func(messages.Key) string {
			close(hung)
			<-release
			return ""
		}})
		go sup.Client().Open(context.Background(), "memory", "a")
		<-hung
		began := time.Now()
		status, body, _ := probe(Live(sup), "/")
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, body, "the supervisor does not answer")
		require.Equal(t, time.Second, time.Since(began))
		close(release)
		synctest.Wait()
		status, _, _ = probe(Live(sup), "/")
		require.Equal(t, http.StatusOK, status)
		require.NoError(t, sup.Stop(t.Context()))
	})
}

func TestRequestsThatComeAtOnceShareOneAnswer(t *testing.T) {
	inFakeTime(t, func(t *testing.T) {
		var asked, answered atomic.Int64
		release := make(chan struct{})
		h := &handler{failing: func(*messages.Snapshot) []string { return nil }, inspect: func(context.Context) (*messages.Snapshot, error) {
			asked.Add(1)
			<-release
			return &messages.Snapshot{}, nil
		}}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if status, _, _ := probe(h, "/"); status == http.StatusOK {
					answered.Add(1)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		impatient := httptest.NewRecorder() // one who does not wait, such as a handler with a timeout
		h.ServeHTTP(impatient, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
		require.Equal(t, http.StatusServiceUnavailable, impatient.Code)
		require.Equal(t, "the supervisor does not answer\n", impatient.Body.String())
		close(release)
		all.Wait()
		require.EqualValues(t, 1, asked.Load())
		require.EqualValues(t, 100, answered.Load())
		probe(h, "/")
		require.EqualValues(t, 2, asked.Load(), "the answer is not kept")
	})
}

func TestAnswersAreTextOrJSONAndNotStored(t *testing.T) {
	sup := start(t, supervisor.Config{})
	defer sup.Stop(t.Context())
	for target, want := range map[string]string{"/": "text/plain; charset=utf-8", "/?format=json": "application/json", "/accept": "application/json"} {
		var accept []string
		if target == "/accept" {
			accept = []string{"Accept", "text/html, application/json;q=0.9"}
		}
		status, body, header := probe(Live(sup), target, accept...)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, want, header.Get("Content-Type"))
		require.Equal(t, "no-store", header.Get("Cache-Control"))
		require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
		require.Equal(t, map[string]string{"text/plain; charset=utf-8": "ok", "application/json": `{"ok":true}`}[want], strings.TrimSpace(body))
	}
	w := httptest.NewRecorder()
	Live(sup).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
}

func BenchmarkProbe(b *testing.B) {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	sup, err := supervisor.Start(system, supervisor.Config{Servers: []supervisor.Server{{Name: "s", URL: "http://s.invalid"}}})
	require.NoError(b, err)
	defer sup.Stop(context.Background())
	h := Ready(sup, "s")
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}
