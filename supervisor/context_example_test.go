package supervisor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// requestID is the key of a value in the contexts of this program.
type requestID struct{}

// audit reports who has called which tool.
func audit(report func(request, run any, tool string)) supervisor.Interceptor {
	return func(next supervisor.Runner) supervisor.Runner {
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			run, _ := messages.AttributesOf(ctx).Get("run")
			report(ctx.Value(requestID{}), run, messages.TargetOf(op))
			return next(ctx, op)
		}
	}
}

// The context of a client reaches interceptors. A message carries attributes instead.
func ExampleClient_context() {
	sup, err := supervisor.Start(newSystem(), supervisor.Config{
		Servers:      []mcpbridge.Server{{Name: "greeter", InMemory: newGreeter()}},
		Interceptors: []supervisor.Interceptor{audit(func(request, run any, tool string) { fmt.Println(request, run, tool) })},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(context.Background())

	ctx := context.WithValue(context.Background(), requestID{}, "request 7")
	ctx = messages.WithAttributes(ctx, messages.NewAttributes(map[string]string{"run": "run 1"}))
	greet := &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "Ann"}}
	if _, err := sup.Client().CallTool(ctx, "greeter", "conversation-1", greet); err != nil {
		log.Fatal(err)
	}

	call := &messages.CallTool{Header: messages.To("greeter", "conversation-1"), Params: greet}
	call.Attributes = messages.NewAttributes(map[string]string{"run": "run 2"})
	if _, err := sup.Client().Do(context.Background(), call); err != nil {
		log.Fatal(err)
	}
	// Output:
	// request 7 run 1 greet
	// <nil> run 2 greet
}

// Attributed are credentials that say which tenant each request is sent for.
type Attributed struct{ mcpbridge.Credentials }

// Headers adds the tenant to the headers of a request.
func (t Attributed) Headers(ctx context.Context) (http.Header, error) {
	headers, err := t.Credentials.Headers(ctx)
	if err != nil {
		return nil, err
	}
	headers = headers.Clone()
	if tenant, ok := messages.AttributesOf(ctx).Get("tenant"); ok {
		headers.Set("X-Tenant", tenant)
	}
	return headers, nil
}

// staticToken are credentials with one token.
type staticToken string

func (t staticToken) Headers(context.Context) (http.Header, error) {
	return http.Header{"Authorization": {"Bearer " + string(t)}}, nil
}

func (staticToken) Refresh(context.Context, *http.Request, *http.Response) error {
	return fmt.Errorf("the token cannot be renewed")
}

// Requests carry the trace of their operation, and credentials find its attributes in their
// context.
func ExampleConfig_trace() {
	server := mcp.NewServer(&mcp.Implementation{Name: "search"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "search"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		fmt.Println(req.Extra.Header.Get("Traceparent"), req.Extra.Header.Get("X-Tenant"))
		return &mcp.CallToolResult{}, nil, nil
	})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()
	auth := mcpbridge.AuthenticatorFunc(func(context.Context, messages.Key) (mcpbridge.Credentials, error) {
		return Attributed{staticToken("secret-token")}, nil
	})
	sup, err := supervisor.Start(newSystem(), supervisor.Config{Servers: []mcpbridge.Server{{Name: "search", URL: web.URL, Auth: auth}}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(context.Background())

	call := &messages.CallTool{Header: messages.To("search", "conversation-1"), Params: &mcp.CallToolParams{Name: "search"}}
	call.Trace = messages.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	call.Attributes = messages.NewAttributes(map[string]string{"tenant": "acme"})
	if _, err := sup.Client().Do(context.Background(), call); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 acme
}

// Events have JSON and a value for log/slog.
func ExampleSupervisor_eventsAsJSON() {
	event := &messages.SessionRestarting{
		Stamp:   messages.Stamp{Key: messages.Key{Server: "search", Scope: "ann"}, Generation: 2, Time: time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC), Supervisor: "mcpactor1"},
		Attempt: 1, Delay: 250 * time.Millisecond, Cause: "connection reset",
	}
	data, err := json.Marshal(event)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(data))
	fmt.Println(event)

	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	logger.Info("session", "mcp", event)
	// Output:
	// {"type":"session_restarting","key":{"server":"search","scope":"ann"},"generation":2,"time":"2026-07-28T12:00:00Z","supervisor":"mcpactor1","attempt":1,"cause":"connection reset","delay":"250ms"}
	// session_restarting search/ann generation=2 attempt=1 delay=250ms cause=connection reset
	// level=INFO msg=session mcp.event=session_restarting mcp.key=search/ann mcp.generation=2 mcp.attempt=1 mcp.delay=250ms mcp.cause="connection reset"
}
