package wire

import (
	"encoding/json"
	"errors"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// again returns a message as the other side gets it.
func again(t *testing.T, v any) any {
	t.Helper()
	typ, body, err := Encode(v)
	require.NoError(t, err)
	decoded, err := Decode(typ, body)
	require.NoError(t, err)
	return decoded
}

func names() []string { return slices.Sorted(maps.Keys(byName)) }

func TestEveryMessageCrossesWithAllItsFields(t *testing.T) {
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				of := reflect.TypeFor[messages.CallTool]()
				for typ, f := range byType {
					if f.name == name {
						of = typ
					}
				}
				sent := filled(t, of)
				typ, body, err := Encode(sent)
				require.NoError(t, err)
				require.Equal(t, name, typ)
				got, err := Decode(typ, body)
				require.NoError(t, err)
				require.Equal(t, sent, got)

				byValue, sameBody, err := Encode(reflect.ValueOf(sent).Elem().Interface())
				require.NoError(t, err)
				require.Equal(t, name, byValue)
				require.Equal(t, string(body), string(sameBody))

				zero := reflect.New(of).Interface()
				require.IsType(t, zero, again(t, zero))
			})
		})
	}
}

// A message of package messages that has no name here fails this test.
func TestEveryMessageHasAName(t *testing.T) {
	const path = "github.com/mcpactor/mcpactor/messages"
	export, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", path).Output()
	require.NoError(t, err)
	pkg, err := importer.ForCompiler(token.NewFileSet(), "gc", func(string) (io.ReadCloser, error) {
		return os.Open(strings.TrimSpace(string(export)))
	}).Import(path)
	require.NoError(t, err)

	var kinds []*types.Interface
	for _, name := range []string{"Command", "Reply", "Event", "Request", "Answer"} {
		kinds = append(kinds, pkg.Scope().Lookup(name).Type().Underlying().(*types.Interface))
	}
	known := map[string]bool{}
	for of := range byType {
		known[of.Name()] = true
	}
	parts := []string{"Header", "Receipt", "Stamp"} // of messages
	found := []string{"Withdrawn"}                  // is of no kind
	for _, name := range pkg.Scope().Names() {
		object, ok := pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || !object.Exported() || slices.Contains(parts, name) {
			continue
		}
		if _, isStruct := object.Type().Underlying().(*types.Struct); !isStruct {
			continue
		}
		if slices.ContainsFunc(kinds, func(kind *types.Interface) bool { return types.Implements(types.NewPointer(object.Type()), kind) }) {
			found = append(found, name)
		}
	}
	require.Greater(t, len(found), 60)
	for _, name := range found {
		require.True(t, known[name], "messages.%s has no name on the wire", name)
	}
}

// Members of different versions know each other's names: none may change.
func TestNamesOnTheWireAreStable(t *testing.T) {
	require.Subset(t, names(), strings.Fields(`ack bind bound call-replayed call-tool cancel cancel-scope close-all close-matching close-scope close-server
		close-session closed complete completion custom custom-notification custom-result done elicit elicited failure forget get-prompt handle-left
		handle-list handle-lost handle-minted handle-released handles-released inspect list-handles
		list-prompts list-resource-templates list-resources list-roots list-tools open owner-terminated pin ping pinned progress prompt release-handles
		prompt-list prompts-changed read-resource refusal resource-contents resource-list resource-template-list resource-updated
		resources-changed restart roots sample sampled server-log session-closed session-evicted session-expired session-gave-up session-info
		session-lost session-opened session-restarted session-restarting set-log-level set-roots snapshot subscribe tool-list
		tool-result tools-changed unsubscribe withdrawn`))
	for of, f := range byType {
		require.True(t, f.name == kebabCase(of.Name()) || strings.HasPrefix(f.name, "test-"), "%v is %q: its name changes only with docs/api.txt", of, f.name)
	}
}

func TestADeadlineCrossesAsTheTimeThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := &messages.Ping{Header: messages.To("s", "a")}
		require.Zero(t, again(t, call).(*messages.Ping).Deadline)
		require.Zero(t, again(t, &messages.Elicit{}).(*messages.Elicit).Deadline)

		call.Deadline = time.Now().Add(time.Minute)
		typ, body, err := Encode(call)
		require.NoError(t, err)
		question, asked, err := Encode(&messages.Elicit{Origin: messages.Origin{Deadline: call.Deadline}})
		require.NoError(t, err)
		time.Sleep(time.Hour) // the other clock is one hour ahead
		decoded, err := Decode(typ, body)
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Until(decoded.(*messages.Ping).Deadline))
		decoded, err = Decode(question, asked)
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Until(decoded.(*messages.Elicit).Deadline))

		for _, left := range []time.Duration{0, -time.Second} { // it has passed: that is no call without a deadline
			call.Deadline = time.Now().Add(left)
			require.Equal(t, min(left, -1), time.Until(again(t, call).(*messages.Ping).Deadline))
		}
	})
}

// A step of the wall clock, of this machine or of the other one, moves no deadline that has crossed: it has a reading of the
// monotonic clock, with which package time compares.
func TestADeadlineThatHasCrossedIsByTheMonotonicClock(t *testing.T) {
	for _, sent := range []time.Time{time.Now().Add(time.Minute), time.Now().Add(time.Minute).Round(0)} {
		call := &messages.Ping{Header: messages.To("s", "a")}
		call.Deadline, call.WaitUntil = sent, sent
		got := again(t, call).(*messages.Ping)
		for _, at := range []time.Time{got.Deadline, got.WaitUntil} {
			require.NotEqual(t, at.Round(0), at)
		}
	}
}

// The node puts a proxy in the place of each PID that has crossed.
func TestTheNodeKnowsWherePIDsAre(t *testing.T) {
	var found []string
	for of := range byType {
		for _, field := range reflect.VisibleFields(of) {
			if field.Type == reflect.TypeFor[*actor.PID]() && len(field.Index) == 1 {
				found = append(found, of.Name()+"."+field.Name)
			}
		}
	}
	require.ElementsMatch(t, []string{"Bind.Owner", "Bind.Handler", "Bind.Subscriber"}, found, "see proxies.adopt")
}

// Parameters that are missing stay missing, and are rejected as without a cluster.
func TestParamsThatAreNilStayNil(t *testing.T) {
	for _, op := range []messages.Operation{&messages.CallTool{}, &messages.ReadResource{}, &messages.GetPrompt{}, &messages.Complete{}} {
		got := again(t, op)
		require.Equal(t, op, got)
		require.Error(t, got.(messages.Operation).Validate())
		for _, body := range []string{`{}`, `null`, `{"params":null}`, `{"Header":null}`} {
			typ, _, err := Encode(op)
			require.NoError(t, err)
			decoded, err := Decode(typ, []byte(body))
			require.NoError(t, err)
			require.Error(t, decoded.(messages.Operation).Validate())
		}
	}
	require.Nil(t, again(t, &messages.Custom{Name: "x"}).(*messages.Custom).Params)
	require.Nil(t, again(t, &messages.ToolResult{}).(*messages.ToolResult).Result)
	require.Nil(t, again(t, &messages.Elicited{}).(*messages.Elicited).Result)
}

func TestUnknownTypesAreRefused(t *testing.T) {
	for _, v := range []any{nil, 7, "text", struct{}{}, &struct{ messages.Header }{}, func() {}, new(int), &messages.Header{}} {
		_, _, err := Encode(v)
		require.ErrorIs(t, err, ErrUnknownType)
	}
	for _, typ := range []string{"", "call_tool", strings.Repeat("x", 1<<20)} {
		_, err := Decode(typ, []byte("{}"))
		require.ErrorIs(t, err, ErrUnknownType)
		require.Less(t, len(err.Error()), 200)
	}
	_, _, err := Encode((*messages.CallTool)(nil))
	require.EqualError(t, err, "call-tool: is a nil pointer")
}

// The fields that a later version adds are ignored.
func TestUnknownFieldsAreIgnored(t *testing.T) {
	for typ, body := range map[string]string{
		"call-tool":  `{"Header":{"Key":{"server":"s","scope":"a","zone":1},"new":[1]},"params":{"name":"x","new":{}},"new":null}`,
		"list-roots": `{"Origin":{"Key":{"server":"s","scope":"a"},"Question":"q","new":1},"new":{}}`,
		"inspect":    `{"server":"s","new":{"a":[]}}`,
		"restart":    `{"key":{"server":"s"},"new":true}`,
		"snapshot":   `{"id":"1","total":3,"sessions":[{"key":{"server":"s"},"new":1}],"new":{}}`,
		"failure":    `{"code":"busy","new":"x"}`,
		"elicited":   `{"result":{"action":"accept","new":1},"new":1}`,
	} {
		decoded, err := Decode(typ, []byte(body))
		require.NoError(t, err, typ)
		require.NotNil(t, decoded)
	}
	decoded, err := Decode("call-tool", []byte(`{"Header":{"Key":{"server":"s","scope":"a"},"new":[1]},"params":{"name":"x","new":{}}}`))
	require.NoError(t, err)
	require.Equal(t, &messages.CallTool{Header: messages.To("s", "a"), Params: &mcp.CallToolParams{Name: "x"}}, decoded)
}

func TestDecodeSaysWhatIsWrongAndQuotesNoValue(t *testing.T) {
	const secret = "s3cr3t"
	for _, row := range []struct{ typ, body, want string }{
		{"call-tool", `{"Header":{"Key":7}}`, "call-tool: Header.Key does not fit its type"},
		{"call-tool", `{"Header":{"Deadline":"s3cr3t"}}`, "call-tool: Header.Deadline does not fit its type"},
		{"call-tool", `{"params":{"name":["s3cr3t"]}}`, "call-tool: params.name does not fit its type"},
		{"get-prompt", `{"params":{"arguments":{"s3cr3t":7}}}`, "get-prompt: params.arguments.* does not fit its type"},
		{"call-tool", `{"params":{"arguments":{"json":"s3cr3t","map":true}}}`, "call-tool: params: arguments: does not fit its type"},
		{"custom", `{"params":{"json":[1],"map":true}}`, "custom: params: does not fit its type"},
		{"complete", `{"params":{"ref":{"type":"s3cr3t"}}}`, "complete: params.ref does not fit its type"},
		{"tool-result", "{}\n", "tool-result: cannot be converted"},
		{"tool-result", `{"key":{"scope":1}}`, "tool-result: key.scope does not fit its type"},
		{"tool-result", "{}\n" + `{"inputRequests":{"s3cr3t":null}}`, "tool-result: code that converts it panicked"}, // the SDK
		{"session-opened", `{"elapsed":"s3cr3t"}`, "session-opened: does not fit its type"},
		{"bind", `{"owner":1}`, "bind: owner does not fit its type"},
		{"elicit", `["s3cr3t"]`, "elicit: does not fit its type"},
		{"ping", `s3cr3t`, "ping: is not JSON"},
		{"ack", ``, "ack: is not JSON"},
		{"ping", strings.Repeat("[", 1<<20), "ping: is not JSON"},
		{"server-log", `{"data":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `}`, "server-log: is not JSON"},
		{"elicited", `{"result":{"content":{"n":12345678901234567890123,"m":s3cr3t}}}`, "elicited: is not JSON"},
	} {
		_, err := Decode(row.typ, []byte(row.body))
		require.EqualError(t, err, row.want)
		require.NotContains(t, err.Error(), secret)
	}
}

// panicking is a value whose MarshalJSON panics.
type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("s3cr3t") }

// failing is a value that cannot be encoded.
type failing struct{}

func (failing) MarshalJSON() ([]byte, error) { return nil, errors.New("s3cr3t") }

func TestEncodeNamesWhatIsNoJSON(t *testing.T) {
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	tool := func(arguments any) *messages.CallTool {
		return &messages.CallTool{Params: &mcp.CallToolParams{Name: "x", Arguments: arguments}}
	}
	for want, v := range map[string]any{
		"call-tool: params: arguments: cannot be encoded as JSON: the type chan int is not supported": tool(map[string]any{"a": 1, "to": make(chan int)}),
		"call-tool: params: arguments: cannot be encoded as JSON: the type func() is not supported":   tool(struct{ To []any }{[]any{1, func() {}}}),
		"call-tool: params: arguments: cannot be encoded as JSON":                                     tool(map[string]any{"a": failing{}}),
		"call-tool: code that converts it panicked":                                                   tool(panicking{}),
		"call-tool: cannot be encoded as JSON: the type complex128 is not supported":                  &messages.CallTool{Params: &mcp.CallToolParams{Meta: mcp.Meta{"x": 1i}}},
		"custom: params: cannot be encoded as JSON: the type chan int is not supported":               &messages.Custom{Params: map[string]any{"x": make(chan int)}},
		"get-prompt: cannot be encoded as JSON: the type chan int is not supported":                   &messages.GetPrompt{Params: &mcp.GetPromptParams{Meta: mcp.Meta{"x": make(chan int)}}},
		"complete: cannot be encoded as JSON":                                                         &messages.Complete{Params: &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "s3cr3t"}}},
		"tool-result: cannot be encoded as JSON: the type chan int is not supported":                  &messages.ToolResult{Result: &mcp.CallToolResult{StructuredContent: make(chan int)}},
		"subscribe: Header: Key: scope: is not valid UTF-8":                                           &messages.Subscribe{Header: messages.To("s", "\xff")},
		"subscribe: uri: is not valid UTF-8":                                                          &messages.Subscribe{URI: "\xff"},
		"ping: Header: Attributes: is not valid UTF-8":                                                &messages.Ping{Header: messages.Header{Attributes: messages.NewAttributes(map[string]string{"a": "\xff"})}},
		"close-scope: scope: is not valid UTF-8":                                                      &messages.CloseScope{Scope: "\xff"},
		"restart: key: server: is not valid UTF-8":                                                    &messages.Restart{Key: messages.Key{Server: "\xff"}},
	} {
		_, _, err := Encode(v)
		require.EqualError(t, err, want)
	}
	for _, arguments := range []any{cyclic, json.RawMessage("s3cr3t")} {
		_, _, err := Encode(tool(arguments))
		require.EqualError(t, err, "call-tool: params: arguments: cannot be encoded as JSON")
	}
	_, _, err := Encode(&messages.Refusal{Reason: "\xff"})
	require.NoError(t, err, "what is not a name is changed as JSON changes it")
}

type testPlain struct {
	Keys []messages.Key `json:"keys"`
	N    uint64         `json:"n"`
}

func init() { Register[testPlain]("test-plain") }

func TestRegisterAddsATypeOnce(t *testing.T) {
	sent := &testPlain{Keys: []messages.Key{{Server: "s", Scope: "a"}}, N: 1<<64 - 1}
	require.Equal(t, sent, again(t, sent))
	require.Panics(t, func() { Register[testPlain]("test-other") })
	require.Panics(t, func() { Register[struct{ N int }]("test-plain") })
}

func TestTheCauseOfAFailureIsDropped(t *testing.T) {
	got := again(t, &messages.Failure{Code: messages.CodeLost, MayHaveRun: true, Cause: io.EOF})
	require.Equal(t, &messages.Failure{Code: messages.CodeLost, MayHaveRun: true}, got)
}

// The type of a result is in a field of the SDK that is not exported.
func TestAResultThatNeedsInputStillNeedsIt(t *testing.T) {
	const result = `{"resultType":"input_required","requestState":"s"}`
	var tool messages.ToolResult
	var prompt messages.Prompt
	var resource messages.ResourceContents
	for _, reply := range []any{&tool, &prompt, &resource} {
		require.NoError(t, json.Unmarshal([]byte(`{"result":`+result+`}`), reply))
	}
	require.True(t, again(t, &tool).(*messages.ToolResult).Result.NeedsInput())
	require.True(t, again(t, &prompt).(*messages.Prompt).Result.NeedsInput())
	require.True(t, again(t, &resource).(*messages.ResourceContents).Result.NeedsInput())
}

func TestSamplingMessagesHaveContentsOfAllKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &filler{t: t, inexact: true}
		all := []mcp.Content{f.content("text"), f.content("image"), f.content("audio"), f.content("use"), f.content("result")}
		sent := &messages.Sample{Params: &mcp.CreateMessageWithToolsParams{Messages: []*mcp.SamplingMessageV2{{Content: all, Role: "user"}}}}
		for _, content := range all {
			sent.Params.Messages = append(sent.Params.Messages, &mcp.SamplingMessageV2{Content: []mcp.Content{content}, Role: "user"})
		}
		require.Equal(t, sent, again(t, sent))
		answer := &messages.Sampled{Result: &mcp.CreateMessageWithToolsResult{Content: all[3:4], Model: "m", Role: "assistant"}}
		require.Equal(t, answer, again(t, answer))
	})
}
