package tests

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// userKey is the key of a value in the context of a caller.
type userKey struct{}

// as returns a context with a user.
func as(ctx context.Context, user any) context.Context {
	return context.WithValue(ctx, userKey{}, user)
}

// oneTrace and otherTrace are valid.
var (
	oneTrace   = messages.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "vendor=one"}
	otherTrace = messages.Trace{Parent: "00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-00"}
)

// attributed adds an attribute to an operation.
func attributed(key, value string) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.Attributes = op.Attributes.With(key, value) }
}

// traced gives an operation a trace.
func traced(t messages.Trace) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.Trace = t }
}

// tenantIn returns the attribute "tenant" in a context, or "".
func tenantIn(ctx context.Context) string {
	tenant, _ := messages.AttributesOf(ctx).Get("tenant")
	return tenant
}

// carried is what a context of the user's code had when it was seen.
type carried struct {
	user   any
	tenant string
	trace  messages.Trace
}

func carriedBy(ctx context.Context) carried {
	return carried{ctx.Value(userKey{}), tenantIn(ctx), messages.TraceOf(ctx)}
}

// contexts keeps the contexts that reach the user's code.
type contexts struct {
	mu  sync.Mutex
	all []context.Context
	saw []carried
}

func (c *contexts) add(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.saw = append(c.all, ctx), append(c.saw, carriedBy(ctx))
}

// take returns what was seen since the last time.
func (c *contexts) take() (all []context.Context, saw []carried) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, saw = c.all, c.saw
	c.all, c.saw = nil, nil
	return all, saw
}

// recordContexts returns an interceptor that keeps the contexts it gets.
func recordContexts(c *contexts) actors.Interceptor {
	return func(next actors.Runner) actors.Runner {
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			c.add(ctx)
			return next(ctx, op)
		}
	}
}

// contextDialer keeps the contexts of dials and operations.
type contextDialer struct {
	dial.Dialer
	dials, runs contexts
	requests    []dial.Request
}

func (d *contextDialer) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	d.dials.add(ctx)
	d.dials.mu.Lock()
	d.requests = append(d.requests, req)
	d.dials.mu.Unlock()
	conn, err := d.Dialer.Dial(ctx, req)
	if err != nil {
		return nil, err
	}
	return contextConn{conn, d}, nil
}

type contextConn struct {
	dial.Conn
	d *contextDialer
}

func (c contextConn) Do(ctx context.Context, op messages.Operation) (messages.Result, error) {
	c.d.runs.add(ctx)
	return c.Conn.Do(ctx, op)
}

// recorded returns a configuration whose dialer keeps contexts.
func recorded(interceptors ...actors.Interceptor) (supervisor.Config, *contextDialer) {
	d := new(contextDialer)
	return dial.Wrap(supervisor.Config{Interceptors: interceptors}, func(inner dial.Dialer) dial.Dialer {
		d.Dialer = inner
		return d
	}), d
}

// byClient calls a tool as plain Go code does.
func (h *harness) byClient(ctx context.Context, scope, tool string, opts ...func(*messages.CallTool)) (*messages.ToolResult, error) {
	op := call(scope, tool, opts...)
	reply, err := h.sup.Client().Do(ctx, op)
	result, _ := reply.(*messages.ToolResult)
	return result, err
}

// purse are credentials that keep the contexts they are asked with. The user and the tenant
// of a context become headers.
type purse struct {
	dials, headers, refreshes contexts
}

func (p *purse) Credentials(ctx context.Context, _ messages.Key) (mcpbridge.Credentials, error) {
	p.dials.add(ctx)
	return p, nil
}

func (p *purse) Headers(ctx context.Context) (http.Header, error) {
	p.headers.add(ctx)
	headers := http.Header{}
	if user, ok := ctx.Value(userKey{}).(string); ok {
		headers.Set("X-User", user)
	}
	if tenant := tenantIn(ctx); tenant != "" {
		headers.Set("X-Tenant", tenant)
	}
	if t := messages.TraceOf(ctx); t.Parent != "" {
		headers.Set("Traceparent", t.Parent)
	}
	return headers, nil
}

func (p *purse) Refresh(ctx context.Context, req *http.Request, _ *http.Response) error {
	p.refreshes.add(ctx)
	if req.Context().Value(userKey{}) != ctx.Value(userKey{}) {
		return errors.New("the request has another context")
	}
	return nil
}

// request is what the server got.
type request struct{ user, tenant, parent string }

// gets records the headers of the requests of a kind that a server gets.
func (e *testServer) gets(kind string) func() []request {
	var mu sync.Mutex
	var got []request
	e.Inject(kind, func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
		mu.Lock()
		got = append(got, request{r.Header.Get("X-User"), r.Header.Get("X-Tenant"), r.Header.Get("Traceparent")})
		mu.Unlock()
		next.ServeHTTP(w, r.Request)
	})
	return func() []request {
		mu.Lock()
		defer mu.Unlock()
		all := got
		got = nil
		return all
	}
}

func TestContextOfAClientReachesInterceptorsAndTheCredentialsOfEachRequest(t *testing.T) {
	p, seen := new(purse), new(contexts)
	cfg := supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", Auth: p, InsecureCredentials: true}}, Interceptors: []actors.Interceptor{recordContexts(seen)}}
	overLocalHTTP(t, cfg, newHTTPTools, func(h *harness, e *testServer) {
		calls, opened := e.gets("tools/call"), e.gets("initialize")
		cancelled := e.gets("notifications/cancelled")
		_, err := h.byClient(as(h.t.Context(), "ann"), "a", "count", attributed("tenant", "acme"), traced(oneTrace))
		require.NoError(t, err)
		require.Equal(t, []request{{"ann", "acme", oneTrace.Parent}}, calls())
		require.Equal(t, []request{{"", "acme", oneTrace.Parent}}, opened(), "the dial has no context")
		_, saw := p.dials.take()
		require.Equal(t, []carried{{nil, "acme", oneTrace}}, saw)
		_, saw = seen.take()
		require.Equal(t, []carried{{"ann", "acme", oneTrace}}, saw)

		// Each call has its own, also while others run.
		var running sync.WaitGroup
		for _, user := range []string{"ann", "bob"} {
			running.Go(func() {
				ctx := messages.WithTrace(messages.WithAttributes(as(h.t.Context(), user), messages.Attributes{}.With("tenant", "of "+user)), otherTrace)
				for range 20 {
					_, err := h.sup.Client().CallTool(ctx, "s", "a", &mcp.CallToolParams{Name: "count", Arguments: map[string]any{"call": user, "scope": "a"}})
					require.NoError(t, err)
				}
			})
		}
		running.Wait()
		all := calls()
		require.Len(t, all, 40)
		for _, got := range all {
			require.Equal(t, "of "+got.user, got.tenant)
			require.Equal(t, otherTrace.Parent, got.parent)
		}

		// A message has no context.
		h.executed = nil
		h.send(call("a", "count", attributed("tenant", "acme"), traced(oneTrace))).ok()
		require.Equal(t, []request{{"", "acme", oneTrace.Parent}}, calls())
		h.send(call("a", "count")).ok()
		require.Equal(t, []request{{"", "", ""}}, calls(), "nothing is left of the calls before")

		// What is sent for an operation has its attributes, also when it is cancelled.
		c := h.send(call("a", "wait", attributed("tenant", "acme")))
		e.awaitRequests("tools/call", 44)
		h.cancel(c)
		c.fails(messages.CodeCancelled)
		e.awaitRequests("notifications/cancelled", 1)
		require.Equal(t, []request{{"", "acme", ""}}, cancelled())
	})
}

func TestRefreshHasTheContextOfTheCallThatNeedsIt(t *testing.T) {
	p := new(purse)
	overLocalHTTP(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", Auth: p, InsecureCredentials: true}}}, newHTTPTools, func(h *harness, e *testServer) {
		h.send(call("a", "count")).ok()
		refused := false
		e.Inject("tools/call", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
			if !refused {
				refused = true
				w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r.Request)
		})
		_, err := h.byClient(as(h.t.Context(), "ann"), "a", "count", attributed("tenant", "acme"))
		require.NoError(t, err)
		kept, saw := p.refreshes.take()
		require.Equal(t, []carried{{"ann", "acme", messages.Trace{}}}, saw)
		require.NoError(t, kept[0].Err(), "it ends with the session, because others may wait for it")
		require.Nil(t, kept[0].Value(userKey{}), "but its values end with the call")
	})
}

func TestContextDoesNotOutliveItsCall(t *testing.T) {
	seen := new(contexts)
	cfg, d := recorded(recordContexts(seen))
	inFakeTime(t, cfg, func(h *harness) {
		over := func(saw int) {
			t.Helper()
			synctest.Wait()
			for _, c := range []*contexts{seen, &d.runs} {
				kept, carried := c.take()
				require.Len(t, kept, saw)
				for i, ctx := range kept {
					require.Equal(t, "ann", carried[i].user)
					require.Error(t, ctx.Err())
					require.Nil(t, ctx.Value(userKey{}))
					require.Equal(t, "acme", tenantIn(ctx), "attributes are data")
				}
			}
		}
		ask := func(ctx context.Context, tool string) error {
			_, err := h.byClient(as(ctx, "ann"), "a", tool, attributed("tenant", "acme"))
			return err
		}
		require.NoError(t, ask(context.Background(), "count"))
		over(1)

		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		require.ErrorIs(t, ask(ctx, "hang"), messages.CodeDeadline)
		over(1)
		cancel()

		ctx, cancel = context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		require.ErrorIs(t, ask(ctx, "hang"), messages.CodeCancelled)
		over(1)

		h.server.expire("a")
		require.NoError(t, ask(context.Background(), "count"))
		synctest.Wait()
		kept, saw := d.runs.take()
		require.Len(t, kept, 2, "a replay has the values as well")
		require.Equal(t, []carried{{"ann", "acme", messages.Trace{}}, {"ann", "acme", messages.Trace{}}}, saw)
	})
}

// The context of the caller is freed with the reply: also if the server never lets go of the
// call, and if the operation is kept to be repeated after a restart.
func TestContextOfACallerIsFreedWithItsReply(t *testing.T) {
	var mu sync.Mutex
	var kept []context.Context
	cfg := withInterceptors(func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
		mu.Lock()
		kept = append(kept, ctx)
		mu.Unlock()
		return next(ctx, op)
	})
	cfg = dial.Replace(cfg, newFakeServer())
	cfg.Servers = []mcpbridge.Server{{Name: "s", URL: "http://fake.invalid"}}
	h := start(t, cfg)
	defer h.stop()
	freed := make(chan string, 10)
	ask := func(name string, timeout time.Duration, op messages.Operation) {
		value := new([1 << 10]byte)
		runtime.AddCleanup(value, func(name string) { freed <- name }, name)
		ctx, cancel := context.WithTimeout(as(context.Background(), value), timeout)
		defer cancel()
		h.sup.Client().Do(ctx, op)
	}
	ask("call", time.Minute, call("a", "count"))
	ask("subscription", time.Minute, &messages.Subscribe{Header: messages.To("s", "a"), URI: "file:///x"})
	ask("stuck", time.Second, call("a", "stuck"))
	names := map[string]bool{}
	require.Eventually(t, func() bool {
		runtime.GC()
		for len(freed) > 0 {
			names[<-freed] = true
		}
		return len(names) == 3
	}, 20*time.Second, 5*time.Millisecond, "%v", names)
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, kept, 3, "although an interceptor keeps all contexts")
}

func TestDialHasTheAttributesOfItsFirstCallerAndLivesOnWithoutIt(t *testing.T) {
	cfg, d := recorded()
	inFakeTime(t, cfg, func(h *harness) {
		release := make(chan struct{})
		h.server.set(func() {
			h.server.dial = func(ctx context.Context, _ dial.Request) error {
				select {
				case <-release:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		})
		ctx, cancel := context.WithCancel(as(context.Background(), "ann"))
		first := make(chan error, 1)
		go func() {
			_, err := h.byClient(ctx, "a", "count", attributed("tenant", "acme"), traced(oneTrace))
			first <- err
		}()
		synctest.Wait()
		second := h.send(call("a", "count", attributed("tenant", "other"), traced(otherTrace)))
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-first, messages.CodeCancelled)
		close(release)
		require.Equal(t, "1", second.text())

		kept, saw := d.dials.take()
		require.Len(t, kept, 1, "one dial, which the first caller has not taken along")
		require.Equal(t, []carried{{nil, "acme", oneTrace}}, saw)
		tenant, _ := d.requests[0].Attributes.Get("tenant")
		require.Equal(t, "acme", tenant)
		require.Equal(t, oneTrace, d.requests[0].Trace)
		_, saw = d.runs.take()
		require.Equal(t, []carried{{nil, "other", otherTrace}}, saw)
	})
}

func TestAttributesAndTracesOutOfBoundsAreRejected(t *testing.T) {
	for _, cfg := range []supervisor.Config{{}, withInterceptors(passing)} {
		inFakeTime(t, cfg, func(h *harness) {
			long := strings.Repeat("x", 257)
			f := h.send(call("a", "count", attributed("tenant", long))).fails(messages.CodeInvalid)
			require.Contains(t, f.Detail, `attributes["tenant"]: the value has 257 bytes`)
			f = h.send(call("a", "count", traced(messages.Trace{Parent: "none"}))).fails(messages.CodeInvalid)
			require.Contains(t, f.Detail, "trace.parent: ")
			_, err := h.sup.Client().Ping(messages.WithAttributes(context.Background(), messages.Attributes{}.With("", "x")), "s", "a")
			require.ErrorIs(t, err, messages.CodeInvalid)
			require.ErrorContains(t, err, `attributes[""]: the key is empty`)
			require.Empty(t, h.inspect().Sessions)
			require.Zero(t, h.dials.dialed())
		})
	}
}

// passing is an interceptor that does nothing.
func passing(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
	return next(ctx, op)
}

func TestInterceptorMayChangeWhatTravels(t *testing.T) {
	cfg, d := recorded(withInterceptors(func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
		if tenantIn(ctx) == "" {
			return next(ctx, op)
		}
		header := *op.Head()
		header.Attributes = header.Attributes.With("tenant", "replaced")
		return next(as(ctx, "the interceptor"), messages.With(op, header))
	}).Interceptors...)
	inFakeTime(t, cfg, func(h *harness) {
		h.send(call("a", "count", attributed("tenant", "acme"))).ok()
		_, err := h.byClient(as(context.Background(), "ann"), "a", "count")
		require.NoError(t, err)
		kept, saw := d.runs.take()
		require.Equal(t, []carried{{"the interceptor", "replaced", messages.Trace{}}, {"ann", "", messages.Trace{}}}, saw)
		synctest.Wait()
		for _, ctx := range kept {
			require.Nil(t, ctx.Value(userKey{}))
		}
	})
}

// A call that an interceptor makes with its own context carries on what the first caller
// said, but neither reports progress to it nor ends up in its exchange, and has no other fields of its header.
func TestCallThatACallCausesHasItsAttributes(t *testing.T) {
	var client *supervisor.Client
	var headers []messages.Header
	seen := new(contexts)
	cfg, d := recorded(recordContexts(seen), withInterceptors(func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
		headers = append(headers, *op.Head())
		if op.Head().Key.Scope == "a" {
			if op.Head().Subscriber == nil {
				return nil, errors.New("no progress is wanted")
			}
			if _, err := client.Ping(ctx, "s", "b"); err != nil {
				return nil, err
			}
		} else if op.Head().Subscriber != nil {
			return nil, errors.New("progress is wanted for a call that nobody knows of")
		}
		return next(ctx, op)
	}).Interceptors[0])
	inFakeTime(t, cfg, func(h *harness) {
		client = h.sup.Client()
		acme, at := messages.Attributes{}.With("tenant", "acme"), time.Now().Add(time.Minute)
		ctx := supervisor.WithHeader(as(context.Background(), "ann"), messages.Header{
			Key: messages.Key{Server: "x"}, ID: "x", Subscriber: h.pid, Owner: h.pid, // are ignored
			WaitUntil: at, Quiet: time.Second, Replay: messages.ReplayNever, Attributes: acme, Trace: otherTrace, Handler: h.pid,
		})
		ctx = supervisor.WithHeader(ctx, messages.Header{Deadline: at, Replay: messages.ReplayAlways, Trace: oneTrace})
		_, err := h.byClient(supervisor.WithProgress(ctx, func(*messages.Progress) {}), "a", "count")
		require.NoError(t, err)
		require.NotEqual(t, "x", headers[0].ID)
		require.NotEqual(t, h.pid, headers[0].Subscriber)
		require.Equal(t, messages.Header{
			Key: headers[0].Key, ID: headers[0].ID, Subscriber: headers[0].Subscriber,
			Deadline: at, WaitUntil: at, Quiet: time.Second, Replay: messages.ReplayAlways, Attributes: acme, Trace: oneTrace, Handler: h.pid,
		}, headers[0])
		require.Equal(t, messages.Header{Key: headers[1].Key, ID: headers[1].ID, Deadline: at, Attributes: acme, Trace: oneTrace}, headers[1])
		want := carried{"ann", "acme", oneTrace}
		_, saw := seen.take()
		require.Equal(t, []carried{want, want}, saw)
		_, saw = d.runs.take()
		require.Equal(t, []carried{want, want}, saw)

		// The header of an operation counts more than the context.
		_, err = h.byClient(ctx, "b", "count", attributed("tenant", "own"), traced(otherTrace), quiet(time.Hour))
		require.NoError(t, err)
		require.Equal(t, time.Hour, headers[2].Quiet)
		_, saw = seen.take()
		require.Equal(t, []carried{{"ann", "own", otherTrace}}, saw)
	})
}

func TestAttributesAndContextsAreNotLogged(t *testing.T) {
	const secret = "s3cr3t-s3cr3t"
	var log strings.Builder
	cfg, _ := recorded(recordContexts(new(contexts)))
	cfg.Logger = zerolog.New(zerolog.SyncWriter(&log)).Level(zerolog.TraceLevel)
	inFakeTime(t, cfg, func(h *harness) {
		for _, tool := range []string{"count", "refuse", "fail", "hang"} {
			h.send(call("a", tool, attributed("tenant", secret), within(time.Second))).reply()
		}
		h.server.expire("a")
		_, err := h.byClient(as(context.Background(), secret), "a", "count", attributed(secret, "x"))
		require.NoError(t, err)
		h.stop()
		require.NotContains(t, log.String(), secret)
		require.NotEmpty(t, log.String())
	})
}
