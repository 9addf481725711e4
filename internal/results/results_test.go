package results

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	sdkjson "github.com/segmentio/encoding/json"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/exact"
	"github.com/mcpactor/mcpactor/internal/guard"
)

// sdk is a session of the SDK. Its server answers each operation with the result that it is told.
type sdk struct {
	session *mcp.ClientSession
	send    mcp.MethodHandler // the innermost
	replace func(method string) (mcp.Result, error)
	result  []byte
	read    chan jsonrpc.Message
}

func newSDK(t testing.TB) *sdk {
	s := &sdk{read: make(chan jsonrpc.Message, 10)}
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}})
	client.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		s.send = next
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if s.replace != nil {
				return s.replace(method)
			}
			return next(ctx, method, req)
		}
	})
	var err error
	s.session, err = client.Connect(t.Context(), s, nil)
	require.NoError(t, err)
	t.Cleanup(func() { s.session.Close() })
	return s
}

func (s *sdk) Connect(context.Context) (mcp.Connection, error) { return s, nil }
func (s *sdk) SessionID() string                               { return "" }

func (s *sdk) Close() error {
	close(s.read)
	return nil
}

func (s *sdk) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg, ok := <-s.read:
		if !ok {
			return nil, mcp.ErrConnectionClosed
		}
		return msg, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *sdk) Write(_ context.Context, msg jsonrpc.Message) error {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() {
		return nil
	}
	switch {
	case s.result == nil && req.Method == "initialize":
		s.read <- &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`)}
	case s.result == nil:
		s.read <- &jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "unknown"}}
	default:
		resp := s.response(fmt.Sprint(req.ID.Raw()))
		if resp == nil {
			resp = &jsonrpc.Response{ID: req.ID, Result: s.result}
		}
		s.read <- resp
	}
	return nil
}

// line returns the answer to the request with this id.
func (s *sdk) line(id string) []byte {
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), []byte(id), []byte(`,"result":`), s.result, []byte("}"))
}

// response returns the answer to the request with this id as the SDK reads it, or nil if it is not
// one with a result.
func (s *sdk) response(id string) *jsonrpc.Response {
	msg, err := jsonrpc.DecodeMessage(s.line(id))
	if err != nil {
		return nil
	}
	resp, ok := msg.(*jsonrpc.Response)
	if !ok || resp.Error != nil || fmt.Sprint(resp.ID.Raw()) != id {
		return nil
	}
	return resp
}

// compareAll compares what becomes of a result of each method.
func (s *sdk) compareAll(t testing.TB, raw []byte) {
	s.result = raw
	for _, method := range methods() {
		s.compare(t, method)
	}
}

// compare decodes the result with the SDK and with Decode, and requires that they come to the same, apart from what Decode mends.
func (s *sdk) compare(t testing.TB, method string) {
	want, wantErr := guard.Call(func() (mcp.Result, error) {
		return s.send(t.Context(), method, &mcp.ClientRequest[*mcp.PingParams]{Session: s.session, Params: &mcp.PingParams{}})
	})
	line := bytes.Clone(s.result)
	raw := line
	if resp := s.response("4711"); resp != nil {
		// The bridge finds the result in an answer that it parses in place.
		line = s.line("4711")
		at := bytes.Index(line, resp.Result)
		require.GreaterOrEqual(t, at, 0, "the SDK changed the result")
		raw = line[at : at+len(resp.Result)]
	}
	before := bytes.Clone(line)
	got, odd, err := Decode(method, raw)
	require.Equal(t, before, line, "the raw result was changed")
	if err == nil && (wantErr != nil || hasNull(want)) {
		require.False(t, hasNull(got))
		_, err = json.Marshal(got)
		require.NoError(t, err)
		return
	}
	if wantErr != nil {
		for range 50 { // several input requests are decoded in random order, and one may have another error than the other
			if kindOf(err) == kindOf(wantErr) {
				break
			}
			got, _, err = Decode(method, raw)
		}
		require.Nil(t, got)
		require.Equal(t, kindOf(wantErr), kindOf(err), "%v, the SDK's: %v", err, wantErr)
		return
	}
	for i := range line {
		line[i] = '!' // the result does not keep it
	}
	require.NoError(t, err)
	require.Empty(t, odd)
	if exact.IsNeeded(before) {
		require.NoError(t, exact.Restore(want, bytes.Clone(s.result)))
	}
	if next := reflect.ValueOf(got).Elem().FieldByName("NextCursor"); next.IsValid() && next.String() == EmptyCursor {
		next.SetString("")
	}
	require.Equal(t, want, got)
	wantJSON, wantErr := json.Marshal(want)
	gotJSON, err := json.Marshal(got)
	require.Equal(t, wantErr, err)
	require.Equal(t, string(wantJSON), string(gotJSON)) // where -0 is not 0
}

// kindOf returns the kind of an error of a decoder, as far as callers can tell them apart.
func kindOf(err error) string {
	var mismatch *json.UnmarshalTypeError
	var panicked *guard.Panic
	switch {
	case err == nil:
		return "none"
	case errors.As(err, &mismatch):
		return "type"
	case errors.As(err, &panicked):
		return "panic"
	}
	return "other"
}

func methods() []string { return slices.Sorted(maps.Keys(decoders)) }

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// contentSeeds are contents of all types, and what is odd with them.
var contentSeeds = []string{
	`{"type":"text","text":"a"}`,
	`{"type":"text"}`, `{"type":"text","text":null}`, `{"type":"text","text":5}`, `{"type":"text","text":""}`,
	`{"type":"text","text":"é \" \\ \/ \b\f\n\r\t \u00e9 \ud83d\ude00 \ud800 \udc00 \ud800\u0041"}`,
	"{\"type\":\"text\",\"text\":\"\xff\xfe\"}", "{\"type\":\"text\",\"te\xffxt\":\"a\"}", "{\"type\":\"text\",\"text\":\"\x01\"}", "{\"type\":\"text\",\"text\":\"\xff\\n\xc3\"}",
	`{"type":"text","text":"a","_meta":{"a":1,"b":{"c":[null,true,-0,1e3,12345678901234567890]}},"annotations":{"audience":["user","assistant"],"priority":0.5,"lastModified":"2025-01-12T15:00:58Z"}}`,
	`{"type":"text","text":"a","_meta":null,"annotations":null}`, `{"type":"text","_meta":[]}`, `{"type":"text","_meta":"x"}`, `{"type":"text","annotations":[]}`,
	`{"type":"text","annotations":{"audience":null,"priority":1e400}}`, `{"type":"text","annotations":{"priority":"1"}}`, `{"type":"text","annotations":{"Priority":1,"audience":"user"}}`,
	`{"Type":"text","text":"a"}`, `{"type":"text","Text":"a","TEXT":"b"}`, `{"type":"image","type":"text","text":"a","text":"b"}`, `{"t\u0079pe":"text"}`, `{"type":"text","text":"a",}`, `{"type":"text" "text":"a"}`,
	`{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}`, `{"type":"image","data":null}`, `{"type":"image","data":""}`, `{"type":"image"}`, `{"type":"image","data":"a"}`, `{"type":"image","data":"****"}`,
	`{"type":"image","data":"aGVs\nbG8="}`, `{"type":"image","data":"aGVs\u0062G8="}`, `{"type":"image","data":"\/\/\/\/"}`, `{"type":"image","data":[1,2,255]}`, `{"type":"image","data":[]}`, `{"type":"image","data":[256]}`,
	`{"type":"image","data":"aGVsbG8"}`, `{"type":"image","data":"aGVs bG8="}`, `{"type":"image","data":{}}`, `{"type":"image","data":"aGVsbG8=","data":null}`, `{"type":"image","data":"` + strings.Repeat("ABCD", 50) + `"}`,
	`{"type":"audio","data":"aGVsbG8=","mimeType":"audio/wav","_meta":{},"annotations":{}}`,
	`{"type":"resource_link","uri":"a:b","name":"n","title":"t","description":"d","mimeType":"m","size":5,"icons":[{"src":"s","mimeType":"m","sizes":["1x1"],"theme":"dark"}]}`,
	`{"type":"resource_link","size":null,"icons":null}`, `{"type":"resource_link","size":1.5}`, `{"type":"resource_link","size":1e2}`, `{"type":"resource_link","size":-0}`, `{"type":"resource_link","size":9223372036854775808}`,
	`{"type":"resource_link","size":01}`, `{"type":"resource_link","icons":[null,{}]}`, `{"type":"resource_link","icons":{}}`, `{"type":"resource_link","icons":[{"sizes":"any"}]}`,
	`{"type":"resource","resource":{"uri":"a:b","mimeType":"m","text":"x","_meta":{"a":1}}}`, `{"type":"resource","resource":{"uri":"a:b","blob":"aGVsbG8="}}`, `{"type":"resource","resource":{"blob":""}}`,
	`{"type":"resource","resource":{"blob":"?"}}`, `{"type":"resource","resource":null}`, `{"type":"resource"}`, `{"type":"resource","resource":[]}`, `{"type":"resource","resource":{"uri":"a"},"resource":{"text":"b"}}`,
	`{"type":"tool_use","id":"i","name":"n","input":{"a":[1,{"b":null}]},"_meta":{}}`, `{"type":"tool_use","input":null}`, `{"type":"tool_use","input":[]}`,
	`{"type":"tool_result","toolUseId":"i","content":[{"type":"text","text":"a"}],"structuredContent":[1],"isError":true}`, `{"type":"tool_result"}`, `{"type":"tool_result","content":null}`, `{"type":"tool_result","content":[]}`,
	`{"type":"tool_result","content":[null]}`, `{"type":"tool_result","content":[{"type":"tool_use"}]}`, `{"type":"tool_result","content":[{"type":"tool_result"}]}`, `{"type":"tool_result","content":[{"type":"x"}]}`, `{"type":"tool_result","content":{}}`,
	`{"type":"x"}`, `{"type":""}`, `{"type":null}`, `{"type":5}`, `{}`, `null`, `[]`, `"text"`, `5`, `true`,
	`{"type":"text","x":{"y":[1,2,{"z":"\u00e9"}]},"structuredContent":1e400}`, `{"type":"text","structuredContent":-0}`, `{null:1}`, `{"type":"text","x":nullx}`,
}

// seeds are results, and what is odd with them.
var seeds = []string{
	``, ` `, `null`, `{}`, `[]`, `"x"`, `5`, `-`, `true`, `{`, `{"content"`, ` {} `, "\t{\"content\":[]}\n\r", `{}{}`, `{}x`, `nullx`,
	`{"content":null}`, `{"content":[]}`, `{"content":{}}`, `{"content":[null]}`, `{"Content":[{"type":"text"}]}`, `{"content":[1]}`, `{"content":[{"type":"text"}],}`, `{"content":[{"type":"text"},]}`,
	`{"content":[{"type":"text","text":"a"},{"type":"image","data":"AAAA"}],"content":[{"text":"b"}]}`, `{"content":[{"type":"text"}],"content":null}`, `{"content":[{"type":"text"}],"content":[null]}`, `{"content":[{"type":"text"}],"content":[{},{}]}`,
	`{"content":[],"isError":true,"structuredContent":{"a":1,"b":[1.5,"x",null,{}],"a":2},"_meta":{"k":"v"}}`, `{"content":[],"isError":null}`, `{"content":[],"isError":"true"}`, `{"content":[],"isError":1}`,
	`{"structuredContent":null}`, `{"structuredContent":[]}`, `{"structuredContent":"\ud800"}`, `{"structuredContent":1e400}`, `{"structuredContent":-0}`, `{"structuredContent":-0.0e-0}`, `{"structuredContent":12345678901234567890123}`, `{"structuredContent":1E-400}`,
	`{"structuredContent":{"a":1},"structuredContent":{"b":2}}`, `{"structuredContent":` + nested(999) + `}`, `{"structuredContent":` + nested(1000) + `}`, `{"structuredContent":` + nested(998) + `}`, `{"x":` + nested(1001) + `}`,
	`{"structuredContent":"` + strings.Repeat("[{", 600) + `"}`, `{"structuredContent":"\"` + strings.Repeat("[", 1200) + `"}`, `{"structuredContent":[` + strings.Repeat(`{},`, 1100) + `{}]}`, strings.Repeat("}", 1200), `{"x":"\\","structuredContent":` + nested(1000) + `}`,
	`{"_meta":null}`, `{"_meta":[]}`, `{"_meta":5}`, `{"_meta":{"a":1},"_meta":{"b":2}}`, `{"_meta":{"a":1},"_meta":null}`, `{"_meta":{"":1,"\u0061":2,"a":3}}`, `{"meta":{"a":1},"Meta":{"a":1}}`,
	`{"resultType":"complete","content":[{"type":"text","text":"a"}]}`, `{"resultType":"input_required","content":[]}`, `{"resultType":"","content":[]}`, `{"resultType":null}`, `{"resultType":5}`, "{\"resultType\":\"a\\u003c\xff\"}",
	`{"ResultType":"complete"}`, `{"resultType":"complete","resultType":"x"}`, `{"resultType":"complete","_meta":{"a":1},"isError":true,"structuredContent":1,"requestState":"s","inputRequests":{}}`,
	`{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object"}}},"b":{"method":"roots/list","params":{}}}}`,
	`{"inputRequests":{"a":{"method":"sampling/createMessage","params":{"maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"x"}}]}}}}`,
	`{"inputRequests":null}`, `{"inputRequests":{}}`, `{"inputRequests":[]}`, `{"inputRequests":{"a":null}}`, `{"inputRequests":{"a":{"method":"x"}}}`, `{"inputRequests":{"a":{"method":"roots/list"}}}`, `{"inputRequests":{"a":{"METHOD":"roots/list","params":{}}}}`,
	`{"inputRequests":{"a":{"method":"roots/list","params":{}}},"inputRequests":null}`, `{"inputRequests":{"a":5}}`, `{"requestState":5}`, `{"requestState":null}`,
	`{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"assistant","content":{"type":"image","data":"AAAA"}}],"description":"d","_meta":{}}`, `{"messages":null}`, `{"messages":[]}`, `{"messages":[null]}`, `{"messages":{}}`, `{"messages":[{}]}`,
	`{"messages":[{"role":"user","content":null}]}`, `{"messages":[{"role":null,"content":{"type":"text"}}]}`, `{"messages":[{"role":5,"content":{"type":"text"}}]}`, `{"messages":[{"content":[{"type":"text"}]}]}`, `{"messages":[{"Role":"user","content":{"type":"text","text":"a"},"content":{"text":"b"}}]}`,
	`{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"messages":[{"content":{"type":"text","text":"b"}},null]}`, `{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"messages":[{"role":"user"}]}`, `{"messages":[{"role":"user","content":{"type":"text"}} ],"description":null}`,
	`{"contents":[{"uri":"a:b","mimeType":"m","text":"x","_meta":{"a":1}},{"uri":"c","blob":"aGVsbG8="}],"ttlMs":5,"cacheScope":"private"}`, `{"contents":null}`, `{"contents":[]}`, `{"contents":[null]}`, `{"contents":[{"blob":null}]}`, `{"contents":[{"blob":""}]}`, `{"contents":[{"text":null,"blob":"?"}]}`,
	`{"contents":[{"uri":"a","text":"b"}],"contents":[{"uri":"c"}]}`, `{"contents":[{"uri":"a"}],"ttlMs":1.5}`, `{"contents":{}}`, `{"ttlMs":null,"cacheScope":null}`, `{"ttlMs":"5"}`, `{"ttlMs":99999999999999999999}`, `{"ttlMs":1e2}`,
	`{"tools":[{"name":"n","title":"t","description":"d","inputSchema":{"type":"object","properties":{"a":{"type":"number","maximum":1e400}}}}]}`,
	`{"tools":[{"name":"n","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"destructiveHint":true,"idempotentHint":true,"openWorldHint":null,"readOnlyHint":true,"title":"t"},"icons":[{"src":"s"}],"_meta":{"a":1}}],"nextCursor":"c","resultType":"complete","ttlMs":1,"cacheScope":"public"}`,
	`{"tools":null}`, `{"tools":[]}`, `{"tools":[null]}`, `{"tools":{}}`, `{"tools":[{"inputSchema":null}]}`, `{"tools":[{"name":5}]}`, `{"tools":[{"name":"a"}],"tools":[{"title":"b"},null]}`, `{"tools":[{"annotations":[]}]}`, `{"nextCursor":5}`,
	`{"prompts":[{"name":"n","title":"t","description":"d","arguments":[{"name":"a","title":"t","description":"d","required":true},null],"icons":[],"_meta":{}}],"nextCursor":"c"}`, `{"prompts":null}`, `{"prompts":[null]}`, `{"prompts":[{"arguments":{}}]}`,
	`{"resources":[{"uri":"a:b","name":"n","title":"t","description":"d","mimeType":"m","size":5,"annotations":{"audience":["user"],"priority":1},"icons":[{}],"_meta":{}}],"nextCursor":null}`, `{"resources":[{"size":1.5}]}`, `{"resources":[{"size":null}]}`,
	`{"resourceTemplates":[{"uriTemplate":"a:{b}","name":"n","title":"t","description":"d","mimeType":"m","annotations":{},"icons":[],"_meta":{}}]}`, `{"resourceTemplates":[5]}`, `{"resourceTemplates":null,"resultType":"x"}`,
	`{"completion":{"values":["a","b"],"total":2,"hasMore":true},"_meta":{}}`, `{"completion":null}`, `{"completion":{"values":null}}`, `{"completion":{"values":[null,5]}}`, `{"completion":{"values":[]},"completion":{"total":5}}`, `{"completion":[]}`, `{"completion":{"total":1.5}}`,
	`{},"result":{"content":[{"type":"text"}]}`, `{},"error":null`, `{},"error":{"code":1}`, `{},"id":5`, `{},"method":"x"`, `{},"RESULT":5`,
}

// allSeeds returns the seeds, and a result of each method for each content.
func allSeeds() []string {
	all := slices.Clone(seeds)
	for _, c := range contentSeeds {
		all = append(all, `{"content":[`+c+`]}`, `{"messages":[{"role":"user","content":`+c+`}]}`, `{"content":[{"type":"text","text":"a"},`+c+`],"_meta":{"a":1},"resultType":"complete"}`)
	}
	return all
}

// Decode comes to the same as the SDK with any bytes.
func FuzzDecode(f *testing.F) {
	s := newSDK(f)
	for _, raw := range allSeeds() {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) { s.compareAll(t, raw) })
}

func TestKnowsTheMethodsWhoseResultsAnyoneCanMake(t *testing.T) {
	s := newSDK(t)
	s.result = []byte(`{}`)
	s.replace = func(method string) (mcp.Result, error) {
		require.True(t, Knows(method), method)
		result, _, err := Decode(method, s.result)
		return result, err
	}
	_, err := s.session.CallTool(t.Context(), &mcp.CallToolParams{})
	require.NoError(t, err)
	_, err = s.session.GetPrompt(t.Context(), &mcp.GetPromptParams{})
	require.NoError(t, err)
	_, err = s.session.ReadResource(t.Context(), &mcp.ReadResourceParams{})
	require.NoError(t, err)
	_, err = s.session.Complete(t.Context(), &mcp.CompleteParams{})
	require.NoError(t, err)
	_, err = s.session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	_, err = s.session.ListPrompts(t.Context(), nil)
	require.NoError(t, err)
	_, err = s.session.ListResources(t.Context(), nil)
	require.NoError(t, err)
	_, err = s.session.ListResourceTemplates(t.Context(), nil)
	require.NoError(t, err)

	for _, method := range []string{"ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel", "x", ""} {
		require.False(t, Knows(method), method)
		_, _, err := Decode(method, s.result)
		require.Error(t, err)
	}
}

func TestAPanicOfTheSDKIsAnError(t *testing.T) {
	_, _, err := Decode("tools/call", []byte(`{"inputRequests":{"a":null}}`))
	var panicked *guard.Panic
	require.ErrorAs(t, err, &panicked)
}

// The SDK decodes contents into a type that is not exported. Ours has to have the same fields.
func TestContentHasTheFieldsOfTheSDK(t *testing.T) {
	method, ok := reflect.TypeFor[mcp.Content]().MethodByName("fromWire")
	require.True(t, ok)
	require.Equal(t, fieldsOf(method.Type.In(0).Elem()), fieldsOf(reflect.TypeFor[content]()))
}

// fieldsOf describes the fields of a struct.
func fieldsOf(typ reflect.Type) (fields []string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name := strings.TrimPrefix(f.Type.String(), "results.text")
		if name == "" {
			name = "string"
		}
		if f.Type == reflect.SliceOf(reflect.PointerTo(typ)) {
			name = "its own"
		}
		fields = append(fields, fmt.Sprint(f.Name, " ", name, " ", f.Tag))
	}
	return fields
}

// The SDK reads a large result in pieces of 32 KB and more. It has to come to the same wherever a piece ends.
func TestLargeResultsAreThoseOfTheSDK(t *testing.T) {
	s := newSDK(t)
	for _, odd := range []string{`"\u00e9\ud83d\ude00\\\""`, `[true,false,null]`, `[-12.5e+10,0.5]`, `"é😀"`, "[ \t\r\n ]", `{"a":{"b":[]}}`, `"a"`} {
		for cut := range len(odd) + 4 {
			raw := `{"content":[],"structuredContent":["` + strings.Repeat("a", 1<<15-cut-40) + `",` + odd + `,"` + strings.Repeat("b", 5000) + `"]}`
			s.result = []byte(raw)
			s.compare(t, "tools/call")
			_, _, err := Decode("tools/call", s.result)
			require.NoError(t, err)
		}
	}
}

// oneContent returns a result of one content, with this raw value in this field.
func oneContent(kind, field string, size int) []byte {
	return []byte(`{"content":[{"type":"` + kind + `","` + field + `":"` + strings.Repeat("A", size) + `"}]}`)
}

var costs = []struct {
	name           string
	raw            []byte
	bytes, objects float64 // at most
}{
	{"text=20B", oneContent("text", "text", 20), 2 << 10, 12},
	{"text=20B,complete", []byte(`{"resultType":"complete","content":[{"type":"text","text":"aaaaaaaaaaaaaaaaaaaa"}]}`), 2 << 10, 14},
	{"text=1MB", oneContent("text", "text", 1<<20), 1.1 * (1 << 20), 12},
	{"image=5MB", oneContent("image", "data", 5<<20), 0.85 * 5 * (1 << 20), 12},
}

func TestDecodingCostsLittleMoreThanTheResult(t *testing.T) {
	for _, test := range costs {
		decode := func() {
			_, _, err := Decode("tools/call", test.raw)
			require.NoError(t, err)
		}
		const runs = 20
		var before, after runtime.MemStats
		decode() // the JSON library learns the types
		runtime.ReadMemStats(&before)
		for range runs {
			decode()
		}
		runtime.ReadMemStats(&after)
		size := float64(after.TotalAlloc-before.TotalAlloc) / runs
		t.Logf("%s: %.0f bytes, %.3f of the result", test.name, size, size/float64(len(test.raw)))
		require.LessOrEqual(t, size, test.bytes, test.name)
		require.Less(t, testing.AllocsPerRun(runs, decode), test.objects, test.name)
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, bench := range costs {
		b.Run(bench.name+"/decoder=results", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _, err := Decode("tools/call", bench.raw)
				require.NoError(b, err)
			}
		})
		b.Run(bench.name+"/decoder=sdk", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decoder := sdkjson.NewDecoder(bytes.NewReader(bench.raw))
				decoder.DontMatchCaseInsensitiveStructFields()
				require.NoError(b, decoder.Decode(new(mcp.CallToolResult)))
			}
		})
	}
}
