package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/singleflight"

	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/internal/mismatch"
	"github.com/mcpactor/mcpactor/internal/schemas"
	"github.com/mcpactor/mcpactor/messages"
)

// CallToolAs calls a tool as [Client.CallTool] does, and returns its result as a T: see
// [ResultAs], which checks it against the output schema that the server lists for the tool. The
// lists are kept for the 256 keys that were used last. A list is fetched before the first call of
// its key, so that a call whose list cannot be fetched does not run. It is fetched again when it
// does not have the tool, when the generation has grown, and before a result is rejected.
//
// The reply of the server is returned as well if there is one, also with an error. All errors are
// of type [*messages.Failure].
func CallToolAs[T any](ctx context.Context, c *Client, server, scope string, params *mcp.CallToolParams) (T, *messages.ToolResult, error) {
	var none T
	call := &messages.CallTool{Header: messages.To(server, scope), Params: params}
	if f := c.check(ctx, call); f != nil {
		return none, nil, f
	}
	if err := call.Validate(); err != nil {
		return none, nil, messages.NewFailure(call, messages.CodeInvalid, err.Error())
	}
	key := call.Key.Normal()
	list, kept := c.target.outputs.kept.Get(key)
	schema, err := list.schema(params.Name)
	if !kept || !list.has(params.Name) || err != nil {
		list, schema, err = c.listOutputs(ctx, key, params.Name)
	}
	if err != nil {
		return none, nil, aimed(err, call)
	}
	result, err := c.CallTool(ctx, server, scope, params)
	if err != nil {
		return none, nil, err
	}
	value, err := resultAs[T](result, schema)
	if kept && (result.Generation != list.generation || errors.Is(err, messages.CodeProtocol)) {
		if _, now, failed := c.listOutputs(ctx, key, params.Name); failed == nil {
			value, err = resultAs[T](result, now)
		}
	}
	return value, result, aimed(err, call)
}

// ResultAs returns the result of a tool as a T. It decodes the structured content as
// [json.Unmarshal] does. Without structured content it takes the only text of the result, which
// must be JSON. If T is a string type and there is no output schema, it takes the text as it is.
//
// outputSchema is the OutputSchema of the [mcp.Tool] that the server lists, and the content is
// checked against it before it is decoded. With nil it is not checked.
//
// The error is a [*messages.Failure] that names the field and quotes no value. The code is
// [messages.CodeServerError] if the tool reports an error, whose text is the detail. It is
// [messages.CodeProtocol] if there is no content that can be decoded, if the content or the schema
// itself breaks the rules of JSON Schema (drafts 2020-12 and 7), or if the content is no T.
// MayHaveRun is true, because the tool has run.
func ResultAs[T any](result *messages.ToolResult, outputSchema any) (T, error) {
	schema, err := resolve(outputSchema)
	if err != nil && result != nil {
		var none T
		return none, misfit(result, err)
	}
	return resultAs[T](result, schema)
}

// maxLists is the number of keys whose output schemas are kept.
const maxLists = 256

// outputLists has the output schemas of the keys that were used last.
type outputLists struct {
	kept    *lru.Cache[messages.Key, *outputList]
	fetches *singleflight.Group // by key
}

func newOutputLists() outputLists {
	kept, _ := lru.New[messages.Key, *outputList](maxLists) // the only error is a size that is not positive
	return outputLists{kept, &singleflight.Group{}}
}

// outputList has the output schemas of the tools of a key.
type outputList struct {
	generation uint64
	raw        map[string]any // by tool; nil if it has none

	mu       sync.Mutex
	resolved map[string]*jsonschema.Resolved
}

// listOutputs lists the tools of a key, and returns the schema of one. Concurrent callers share a
// list, and none ends it for the others. It has the attributes and the trace of the first one.
func (c *Client) listOutputs(ctx context.Context, key messages.Key, tool string) (*outputList, *jsonschema.Resolved, error) {
	fetch := c.target.outputs.fetches.DoChan(fmt.Sprintf("%q %q", key.Server, key.Scope), func() (any, error) {
		reply, err := ask[*messages.ToolList](caller.Shared(context.Background(), ctx), c, &messages.ListTools{Header: messages.To(key.Server, key.Scope)})
		if err != nil {
			return nil, err
		}
		list := newOutputList(reply)
		c.target.outputs.kept.Add(key, list)
		return list, nil
	})
	select {
	case fetched := <-fetch:
		if fetched.Err != nil {
			return nil, nil, fetched.Err
		}
		list := fetched.Val.(*outputList)
		schema, err := list.schema(tool)
		return list, schema, err
	case <-ctx.Done():
		return nil, nil, c.contextFailure(ctx, &messages.ListTools{Header: messages.To(key.Server, key.Scope)})
	}
}

func newOutputList(reply *messages.ToolList) *outputList {
	list := &outputList{generation: reply.Generation, raw: map[string]any{}, resolved: map[string]*jsonschema.Resolved{}}
	for _, tool := range reply.Result.Tools {
		if tool != nil {
			list.raw[tool.Name] = tool.OutputSchema
		}
	}
	return list
}

// has reports whether the server has listed a tool.
func (l *outputList) has(tool string) bool {
	_, listed := l.raw[tool]
	return listed
}

// schema returns the output schema of a tool, or nil if it has none.
func (l *outputList) schema(tool string) (*jsonschema.Resolved, error) {
	if l == nil || l.raw[tool] == nil {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if schema := l.resolved[tool]; schema != nil {
		return schema, nil
	}
	schema, err := resolve(l.raw[tool])
	if err != nil {
		return nil, err
	}
	l.resolved[tool] = schema
	return schema, nil
}

// resolve prepares an output schema. nil gives nil.
func resolve(raw any) (*jsonschema.Resolved, error) {
	if raw == nil {
		return nil, nil
	}
	resolved, err := schemas.Resolve(raw)
	if err != nil {
		return nil, &messages.Failure{Op: "tools/call", Code: messages.CodeProtocol, Detail: "outputSchema: cannot be used: " + err.Error(), Cause: err}
	}
	return resolved, nil
}

// aimed completes the failure of a typed call.
func aimed(err error, call *messages.CallTool) error {
	var f *messages.Failure
	if err == nil || !errors.As(err, &f) || f.Target != "" || f.Op != call.Method() {
		return err
	}
	named := *f
	named.Key, named.Target = call.Key.Normal(), call.Params.Name
	return &named
}

// resultAs is ResultAs with a schema that is prepared.
func resultAs[T any](result *messages.ToolResult, schema *jsonschema.Resolved) (value T, err error) {
	if result == nil || result.Result == nil {
		return value, messages.NewFailure(nil, messages.CodeInvalid, "the result is nil")
	}
	texts := textsOf(result.Result)
	if result.Result.IsError {
		f := misfit(result, errors.New("the tool reports an error without a text"))
		f.Code = messages.CodeServerError
		if len(texts) > 0 {
			f.Detail = strings.Join(texts, "\n")
		}
		return value, f
	}
	content, where := []byte(nil), "structuredContent"
	switch {
	case result.Result.StructuredContent != nil:
		if content, err = json.Marshal(result.Result.StructuredContent); err != nil {
			return value, misfit(result, fmt.Errorf("structuredContent: is not JSON: %w", err))
		}
	case schema == nil && reflect.TypeFor[T]().Kind() == reflect.String:
		reflect.ValueOf(&value).Elem().SetString(strings.Join(texts, "\n"))
		return value, nil
	case len(texts) == 1 && json.Valid([]byte(texts[0])):
		content, where = []byte(texts[0]), "the text"
	default:
		return value, misfit(result, errors.New("structuredContent: is missing, and the result is not one text that is JSON"))
	}
	if schema != nil {
		if err := schemas.Validate(schema, content, where); err != nil {
			return value, misfit(result, err)
		}
	}
	if err := json.Unmarshal(content, &value); err != nil {
		var none T
		return none, misfit(result, undecoded[T](err, content, where))
	}
	return value, nil
}

// textsOf returns the texts of a result.
func textsOf(result *mcp.CallToolResult) (texts []string) {
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok && text != nil {
			texts = append(texts, text.Text)
		}
	}
	return texts
}

// misfit returns the failure of a result that is not what was asked for.
func misfit(result *messages.ToolResult, err error) *messages.Failure {
	f := &messages.Failure{Op: "tools/call", Code: messages.CodeProtocol, Detail: err.Error(), Cause: errors.Unwrap(err)}
	if in := (*messages.Failure)(nil); errors.As(err, &in) {
		f.Detail, f.Cause = in.Detail, in.Cause
	}
	f.Key, f.ID, f.Generation, f.Replayed, f.MayHaveRun = result.Key, result.ID, result.Generation, result.Replayed, true
	return f
}

// undecoded says why content is no T.
func undecoded[T any](err error, content []byte, where string) error {
	path, value, want := mismatch.Find(content, reflect.TypeFor[T]())
	return &schemas.Misfit{Text: fmt.Sprintf("%s%s: is a JSON %s, and does not fit the Go type %v", where, path, kindOf(value), want), Cause: err}
}

// kindOf returns the word for the kind of a value in JSON.
func kindOf(value []byte) string {
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	return "number"
}
