package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

type weather struct {
	Place   string    `json:"place"`
	Degrees float64   `json:"degrees"`
	Hours   []hour    `json:"hours"`
	At      time.Time `json:"at,omitzero"`
}

type hour struct {
	Rain int `json:"rain"`
}

const weatherSchema = `{"type":"object","required":["place"],"properties":{
	"place":{"type":"string"},"degrees":{"type":"number","minimum":-90},"at":{},
	"hours":{"type":"array","items":{"$ref":"#/$defs/hour"}}},
	"$defs":{"hour":{"type":"object","properties":{"rain":{"type":"integer"}},"additionalProperties":false}}}`

// typedResult returns the reply to a call with structured content.
func typedResult(structured string, texts ...string) *messages.ToolResult {
	result := &mcp.CallToolResult{}
	if structured != "" {
		result.StructuredContent = json.RawMessage(structured)
	}
	for _, text := range texts {
		result.Content = append(result.Content, &mcp.TextContent{Text: text})
	}
	return &messages.ToolResult{Receipt: messages.Receipt{Key: messages.Key{Server: "s", Scope: "x"}, ID: "1", Generation: 2}, Result: result}
}

func TestResultsBecomeValues(t *testing.T) {
	full := weather{Place: "Oslo", Degrees: 7.5, Hours: []hour{{1}, {2}}}
	const text = `{"place":"Oslo","degrees":7.5,"hours":[{"rain":1},{"rain":2}]}`
	for name, result := range map[string]*messages.ToolResult{
		"structured":          typedResult(text),
		"structured and text": typedResult(text, "It is cold."),
		"text":                typedResult("", text),
	} {
		for _, schema := range []any{nil, json.RawMessage(weatherSchema)} {
			value, err := supervisor.ResultAs[weather](result, schema)
			require.NoError(t, err, name)
			require.Equal(t, full, value, name)
			pointer, err := supervisor.ResultAs[*weather](result, schema)
			require.NoError(t, err, name)
			require.Equal(t, full, *pointer, name)
		}
		loose, err := supervisor.ResultAs[map[string]any](result, nil)
		require.NoError(t, err, name)
		require.Equal(t, "Oslo", loose["place"])
	}
	said, err := supervisor.ResultAs[string](typedResult("", "Hello,", "Ada!"), nil)
	require.NoError(t, err)
	require.Equal(t, "Hello,\nAda!", said)
	number, err := supervisor.ResultAs[int64](typedResult("", "9007199254740993"), nil)
	require.NoError(t, err)
	require.EqualValues(t, 9007199254740993, number)
}

func TestResultThatDoesNotFitNamesTheField(t *testing.T) {
	for name, test := range map[string]struct {
		result *messages.ToolResult
		schema string
		want   string
	}{
		"type":         {typedResult(`{"place":"Oslo","degrees":"secret"}`), weatherSchema, `structuredContent.degrees: has type "string", want "number"`},
		"missing":      {typedResult(`{"degrees":1}`), weatherSchema, `structuredContent: missing properties: ["place"]`},
		"bound":        {typedResult(`{"place":"secret","degrees":-100}`), weatherSchema, `structuredContent.degrees: breaks minimum of the schema`},
		"inside":       {typedResult(`{"place":"Oslo","hours":[{"rain":"secret"}]}`), weatherSchema, `structuredContent.hours[].rain: has type "string", want "integer"`},
		"surplus":      {typedResult(`{"place":"Oslo","hours":[{"secret":1}]}`), weatherSchema, `structuredContent.hours[]: has properties that the schema does not allow`},
		"root":         {typedResult(`["secret"]`), weatherSchema, `structuredContent: has type "array", want "object"`},
		"text":         {typedResult("", `{"degrees":1}`), weatherSchema, `the text: missing properties: ["place"]`},
		"schema id":    {typedResult(`{"a":{"b":"secret"}}`), `{"$id":"https://example.com/x","properties":{"a":{"properties":{"b":{"enum":["y"]}}}}}`, `structuredContent.a.b: breaks enum of the schema`},
		"no schema":    {typedResult(`{"place":"Oslo","degrees":"secret"}`), "", `structuredContent.degrees: is a JSON string, and does not fit the Go type float64`},
		"number":       {typedResult(`{"hours":[{"rain":1.234}]}`), "", `structuredContent.hours[].rain: is a JSON number, and does not fit the Go type int`},
		"own decoding": {typedResult(`{"at":"secret"}`), "", `structuredContent.at: is a JSON string, and does not fit the Go type time.Time`},
		"no JSON":      {typedResult("", "It is cold, and a secret."), "", `structuredContent: is missing, and the result is not one text that is JSON`},
		"two texts":    {typedResult("", "{}", "{}"), weatherSchema, `structuredContent: is missing, and the result is not one text that is JSON`},
		"nothing":      {typedResult(""), "", `structuredContent: is missing, and the result is not one text that is JSON`},
		"bad schema":   {typedResult(`{}`), `{"type":"object","properties":{"a":{"$ref":"https://example.com/other"}}}`, `outputSchema: cannot be used: `},
		"odd schema":   {typedResult(`{}`), `[]`, `outputSchema: cannot be used: `},
		"old draft":    {typedResult(`{}`), `{"$schema":"http://json-schema.org/draft-04/schema#"}`, `structuredContent: breaks`},
	} {
		t.Run(name, func(t *testing.T) {
			var schema any
			if test.schema != "" {
				schema = json.RawMessage(test.schema)
			}
			value, err := supervisor.ResultAs[weather](test.result, schema)
			require.Zero(t, value)
			require.ErrorIs(t, err, messages.CodeProtocol)
			require.ErrorContains(t, err, `tools/call on s/x: protocol: `+test.want)
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "1.234")
			var f *messages.Failure
			require.ErrorAs(t, err, &f)
			require.True(t, f.MayHaveRun)
			require.EqualValues(t, 2, f.Generation)
			require.Equal(t, "1", f.ID)
		})
	}
}

func TestErrorOfAToolIsTheErrorOfATypedCall(t *testing.T) {
	result := typedResult(`{"place":"Oslo"}`, "no such place", "try another")
	result.Result.IsError = true
	_, err := supervisor.ResultAs[weather](result, json.RawMessage(weatherSchema))
	require.ErrorIs(t, err, messages.CodeServerError)
	require.EqualError(t, err, "tools/call on s/x: server_error: no such place try another")
	result.Result.Content = nil
	_, err = supervisor.ResultAs[weather](result, nil)
	require.EqualError(t, err, "tools/call on s/x: server_error: the tool reports an error without a text")

	for _, result := range []*messages.ToolResult{nil, {}} {
		_, err = supervisor.ResultAs[weather](result, nil)
		require.ErrorIs(t, err, messages.CodeInvalid)
	}
	_, err = supervisor.ResultAs[weather](nil, json.RawMessage(`[]`))
	require.ErrorIs(t, err, messages.CodeInvalid)
}

// forecast is a server whose tool answers with what it is told to.
type forecast struct {
	mcp *mcp.Server

	mu     sync.Mutex
	answer *mcp.CallToolResult
	err    error // of lists
	delay  time.Duration
	lists  int
	runs   int
}

func newForecast(schema string) *forecast {
	f := &forecast{mcp: mcp.NewServer(&mcp.Implementation{Name: "forecast", Version: "1"}, nil)}
	f.mcp.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/list" {
				f.mu.Lock()
				f.lists++
				err, delay := f.err, f.delay
				f.mu.Unlock()
				time.Sleep(delay) // synctest
				if err != nil {
					return nil, err
				}
			}
			return next(ctx, method, req)
		}
	})
	f.define(schema)
	return f
}

func (f *forecast) define(schema string) {
	tool := &mcp.Tool{Name: "weather", InputSchema: json.RawMessage(`{"type":"object"}`)}
	if schema != "" {
		tool.OutputSchema = json.RawMessage(schema)
	}
	f.mcp.AddTool(tool, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.runs++
		answer := *f.answer // the SDK changes it
		return &answer, nil
	})
}

func (f *forecast) say(structured string, texts ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = typedResult(structured, texts...).Result
}

// inForecast runs a scenario in fake time.
func inForecast(t *testing.T, schema string, scenario func(ctx context.Context, sup *supervisor.Supervisor, f *forecast), interceptors ...supervisor.Interceptor) {
	synctest.Test(t, func(t *testing.T) {
		f := newForecast(schema)
		sup, err := supervisor.Start(newSystem(), supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", InMemory: f.mcp}}, Interceptors: interceptors})
		require.NoError(t, err)
		defer func() {
			require.NoError(t, sup.Stop(context.Background()))
			time.Sleep(3 * time.Second) // until Proto.Actor's throttle of dead letters ends
		}()
		scenario(t.Context(), sup, f)
	})
}

func callWeather(ctx context.Context, sup *supervisor.Supervisor, scope string) (weather, *messages.ToolResult, error) {
	return supervisor.CallToolAs[weather](ctx, sup.Client(), "s", scope, &mcp.CallToolParams{Name: "weather"})
}

func TestTypedCallChecksTheSchemaThatTheServerLists(t *testing.T) {
	inForecast(t, weatherSchema, func(ctx context.Context, sup *supervisor.Supervisor, f *forecast) {
		f.say(`{"place":"Oslo","degrees":3}`)
		for range 3 {
			value, result, err := callWeather(ctx, sup, "x")
			require.NoError(t, err)
			require.Equal(t, weather{Place: "Oslo", Degrees: 3}, value)
			require.Equal(t, messages.Key{Server: "s", Scope: "x"}, result.Key)
		}
		require.Equal(t, 1, f.lists)

		f.say(`{"place":1}`)
		value, result, err := callWeather(ctx, sup, "x")
		require.Zero(t, value)
		require.NotNil(t, result)
		require.EqualError(t, err, `tools/call "weather" on s/x: protocol: structuredContent.place: has type "integer", want "string"`)
		require.Equal(t, 2, f.lists, "the schema could have changed")
		require.Equal(t, 4, f.runs)

		f.define(`{"type":"object"}`)
		f.say(`{"degrees":1}`)
		value, _, err = callWeather(ctx, sup, "x")
		require.NoError(t, err, "it has changed")
		require.Equal(t, weather{Degrees: 1}, value)
		require.Equal(t, 5, f.runs)

		_, err = sup.Client().CloseScope(ctx, "x")
		require.NoError(t, err)
		f.define(weatherSchema)
		_, _, err = callWeather(ctx, sup, "x")
		require.ErrorContains(t, err, `missing properties: ["place"]`, "a new session is listed again")

		_, result, err = supervisor.CallToolAs[weather](ctx, sup.Client(), "s", "x", &mcp.CallToolParams{Name: "other"})
		require.Error(t, err)
		require.Nil(t, result)
		_, _, err = supervisor.CallToolAs[weather](ctx, sup.Client(), "s", "x", nil)
		require.ErrorIs(t, err, messages.CodeInvalid)
		_, _, err = supervisor.CallToolAs[weather](ctx, nil, "s", "x", nil)
		require.ErrorIs(t, err, messages.CodeInvalid)
	})
}

func TestTypedCallWithoutAnOutputSchemaIsDecodedOnly(t *testing.T) {
	inForecast(t, "", func(ctx context.Context, sup *supervisor.Supervisor, f *forecast) {
		f.say(`{"degrees":3}`)
		value, _, err := callWeather(ctx, sup, "x")
		require.NoError(t, err)
		require.Equal(t, weather{Degrees: 3}, value)
		f.say("", "warm")
		_, result, err := callWeather(ctx, sup, "x")
		require.ErrorIs(t, err, messages.CodeProtocol)
		require.NotNil(t, result)
		text, _, err := supervisor.CallToolAs[string](ctx, sup.Client(), "s", "x", &mcp.CallToolParams{Name: "weather"})
		require.NoError(t, err)
		require.Equal(t, "warm", text)
	})
}

func TestCallWhoseSchemaIsUnknownDoesNotRun(t *testing.T) {
	inForecast(t, weatherSchema, func(ctx context.Context, sup *supervisor.Supervisor, f *forecast) {
		f.say(`{"place":"Oslo"}`)
		f.err = errors.New("no list today")
		_, result, err := callWeather(ctx, sup, "x")
		require.ErrorIs(t, err, messages.CodeServerError)
		require.ErrorContains(t, err, "tools/list on s/x")
		require.Nil(t, result)
		require.Equal(t, 0, f.runs)

		f.err = nil
		f.define(`{"type":"object","$ref":"https://example.com/other"}`)
		_, _, err = callWeather(ctx, sup, "x")
		require.ErrorContains(t, err, `tools/call "weather" on s/x: protocol: outputSchema: cannot be used: `)
		require.Equal(t, 0, f.runs)
		var failure *messages.Failure
		require.ErrorAs(t, err, &failure)
		require.False(t, failure.MayHaveRun)

		f.define(weatherSchema)
		_, _, err = callWeather(ctx, sup, "x")
		require.NoError(t, err)
	})
}

func TestTypedCallersShareOneListAndNoneEndsItForOthers(t *testing.T) {
	inForecast(t, weatherSchema, func(ctx context.Context, sup *supervisor.Supervisor, f *forecast) {
		f.say(`{"place":"Oslo"}`)
		f.delay = 3 * time.Second
		impatient, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		gaveUp, done := make(chan error, 1), make(chan error, 20)
		go func() {
			_, _, err := callWeather(impatient, sup, "x")
			gaveUp <- err
		}()
		synctest.Wait()
		for range 20 {
			go func() {
				_, _, err := callWeather(ctx, sup, "x")
				done <- err
			}()
		}
		require.ErrorIs(t, <-gaveUp, messages.CodeDeadline)
		for range 20 {
			require.NoError(t, <-done)
		}
		require.Equal(t, 1, f.lists)
		require.Equal(t, 20, f.runs)
	})
}

// A validator that follows such a schema overflows its stack, which ends the process.
func TestSchemaWithoutAnEndIsNotUsed(t *testing.T) {
	const endless = `{"type":"object","allOf":[{"$ref":"#"}]}`
	_, err := supervisor.ResultAs[weather](typedResult(`{"place":"Oslo"}`), json.RawMessage(endless))
	require.ErrorIs(t, err, messages.CodeProtocol)
	require.ErrorContains(t, err, "outputSchema: cannot be used: it refers to itself without an end")
	inForecast(t, endless, func(ctx context.Context, sup *supervisor.Supervisor, f *forecast) {
		_, _, err := callWeather(ctx, sup, "x")
		require.ErrorContains(t, err, "outputSchema: cannot be used")
		require.Zero(t, f.runs)
	})

	nested := strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000)
	_, err = supervisor.ResultAs[any](typedResult(nested), json.RawMessage(`{"additionalProperties":{"$ref":"#"}}`))
	require.ErrorContains(t, err, "structuredContent: is nested more than 200 times")
}

func TestToolThatIsAddedLaterIsCheckedToo(t *testing.T) {
	inForecast(t, weatherSchema, func(ctx context.Context, sup *supervisor.Supervisor, f *forecast) {
		f.say(`{"place":"Oslo"}`)
		_, _, err := callWeather(ctx, sup, "x")
		require.NoError(t, err)
		tool := &mcp.Tool{Name: "tide", InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object","required":["height"]}`)}
		f.mcp.AddTool(tool, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return typedResult(`{"place":"Oslo"}`).Result, nil
		})
		_, _, err = supervisor.CallToolAs[weather](ctx, sup.Client(), "s", "x", &mcp.CallToolParams{Name: "tide"})
		require.ErrorIs(t, err, messages.CodeProtocol)
		require.ErrorContains(t, err, "height")
	})
}

func TestListOfATypedCallHasTheAttributesOfItsFirstCallerOnly(t *testing.T) {
	type user struct{}
	seen := map[string][]any{}
	inForecast(t, weatherSchema, func(ctx context.Context, sup *supervisor.Supervisor, f *forecast) {
		f.say(`{"place":"Oslo"}`)
		ctx = context.WithValue(messages.WithAttributes(ctx, messages.NewAttributes(map[string]string{"run": "7"})), user{}, "ann")
		_, _, err := callWeather(ctx, sup, "x")
		require.NoError(t, err)
		require.Equal(t, map[string][]any{"tools/list": {"7", nil}, "tools/call": {"7", "ann"}}, seen)
	}, func(next supervisor.Runner) supervisor.Runner {
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			run, _ := messages.AttributesOf(ctx).Get("run")
			seen[op.Method()] = append(seen[op.Method()], run, ctx.Value(user{}))
			return next(ctx, op)
		}
	})
}

func TestActorConvertsAReply(t *testing.T) {
	inForecast(t, weatherSchema, func(_ context.Context, sup *supervisor.Supervisor, f *forecast) {
		f.say(`{"place":"Oslo"}`)
		done := make(chan any, 1)
		var schema any
		sup.System().Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			switch msg := c.Message().(type) {
			case *actor.Started:
				c.Request(sup.PID(), &messages.ListTools{Header: messages.To("s", "x")})
			case *messages.ToolList:
				schema = msg.Result.Tools[0].OutputSchema
				c.Request(sup.PID(), &messages.CallTool{Header: messages.To("s", "x"), Params: &mcp.CallToolParams{Name: "weather"}})
			case *messages.ToolResult:
				value, err := supervisor.ResultAs[weather](msg, schema)
				if err != nil {
					done <- err
					return
				}
				done <- value
			}
		}))
		require.Equal(t, weather{Place: "Oslo"}, <-done)
	})
}

func TestServersAreThoseOfTheLastReload(t *testing.T) {
	inForecast(t, "", func(ctx context.Context, sup *supervisor.Supervisor, f *forecast) {
		require.Equal(t, []string{"s"}, sup.Servers())
		_, err := sup.Reload(ctx, []mcpbridge.Server{{Name: "b", InMemory: f.mcp}, {Name: "a", InMemory: f.mcp}})
		require.NoError(t, err)
		require.Equal(t, []string{"b", "a"}, sup.Servers())
		_, err = sup.Reload(ctx, []mcpbridge.Server{{Name: "b"}})
		require.Error(t, err)
		require.Equal(t, []string{"b", "a"}, sup.Servers())
		require.Nil(t, (*supervisor.Supervisor)(nil).Servers())
	})
}
