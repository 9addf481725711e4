package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/tests/faults"
)

// flapping is a server whose tools change, and which goes away and comes back. It lists its tools in the order and with the order of
// members that it has had since its last restart.
type flapping struct {
	*faults.Server
	name   string
	steady string     // a tool that stays as it is
	random *rand.Rand // only the scenario uses it
	isAway bool       // only the scenario uses it
	missed bool       // the tools have changed while it was away; only the scenario uses it

	mu      sync.Mutex
	mcp     *mcp.Server
	tools   []map[string]any
	dropped []map[string]any
	order   uint64 // chooses the order of members
	changes int
}

func newFlapping(name string, seed uint64) *flapping {
	f := &flapping{name: name, random: rand.New(rand.NewPCG(seed, 0))}
	for range 12 {
		f.tools = append(f.tools, f.invent())
	}
	f.steady = f.tools[0]["name"].(string)
	delete(f.tools[0]["inputSchema"].(map[string]any), "required")
	f.Server = faults.Local(f.handler)
	return f
}

// phrases are what the descriptions of tools and arguments are made of.
var phrases = strings.Split("Searches the issues of a project by text, label and author.|Returns at most 50 results, the newest first."+
	"|Use this before you create one, so that none is there twice.|Fails if the caller may not read the project.|The result has a cursor if there are more."+
	"|Times are in UTC, such as 2026-11-30T09:00:00Z.|Paths are relative to the root of the repository.|Does not follow symbolic links.", "|")

func (f *flapping) phrases(least, most int) string {
	var all []string
	for range least + f.random.IntN(most-least+1) {
		all = append(all, phrases[f.random.IntN(len(phrases))])
	}
	return strings.Join(all, " ")
}

// invent returns the definition of a tool that the server has never had.
func (f *flapping) invent() map[string]any {
	f.changes++
	properties := map[string]any{}
	for i := range 1 + f.random.IntN(6) {
		properties[fmt.Sprintf("%s_%d", []string{"query", "limit", "path", "label"}[f.random.IntN(4)], i)] = map[string]any{
			"type": []string{"string", "integer", "boolean"}[f.random.IntN(3)], "description": f.phrases(1, 2),
		}
	}
	return map[string]any{
		"name": fmt.Sprintf("%s_%03d", []string{"search", "create", "read", "update"}[f.random.IntN(4)], f.changes), "description": f.phrases(1, 5),
		"inputSchema": map[string]any{"type": "object", "properties": properties, "required": slices.Sorted(maps.Keys(properties))[:1]},
		"annotations": map[string]any{"readOnlyHint": f.random.IntN(2) == 0, "title": "Tool of " + f.name},
	}
}

// upgraded returns another definition of the same tool.
func (f *flapping) upgraded(tool map[string]any) map[string]any {
	f.changes++
	next := maps.Clone(tool)
	if f.random.IntN(2) == 0 {
		next["description"] = f.phrases(1, 5) + fmt.Sprintf(" Since version 1.%d.", f.changes)
		return next
	}
	schema := maps.Clone(tool["inputSchema"].(map[string]any))
	schema["properties"] = map[string]any{fmt.Sprintf("since_%d", f.changes): map[string]any{"type": "string", "description": f.phrases(1, 3)}}
	delete(schema, "required")
	next["inputSchema"] = schema
	return next
}

// act does what a server may do between two turns.
func (f *flapping) act() {
	switch f.random.IntN(8) {
	case 0, 1:
		if f.isAway = !f.isAway; f.isAway {
			f.Stop()
		} else {
			f.comeBack()
		}
	case 2:
		f.change(func() {
			f.order = f.random.Uint64()
			f.random.Shuffle(len(f.tools), func(i, j int) { f.tools[i], f.tools[j] = f.tools[j], f.tools[i] })
		})
		f.missed = true
		f.comeBack()
	case 3:
		forms := faults.Expiries()
		f.Expire(forms[f.random.IntN(len(forms))])
	case 4:
		f.change(func() { f.tools = slices.Insert(f.tools, f.random.IntN(len(f.tools)+1), f.invent()) })
	case 5:
		f.change(func() {
			if i := f.random.IntN(len(f.tools)); len(f.tools) > 8 && f.tools[i]["name"] != f.steady {
				f.dropped = append(f.dropped, f.tools[i])
				f.tools = slices.Delete(f.tools, i, i+1)
			}
		})
	case 6:
		f.change(func() {
			if n := len(f.dropped); n > 0 {
				f.tools, f.dropped = append(f.tools, f.dropped[n-1]), f.dropped[:n-1]
			}
		})
	case 7:
		f.change(func() {
			if i := f.random.IntN(len(f.tools)); f.tools[i]["name"] != f.steady {
				f.tools[i] = f.upgraded(f.tools[i])
			}
		})
	}
}

// comeBack makes the server one that can be reached. It has restarted if nobody could be told of a change.
func (f *flapping) comeBack() {
	start := f.Start
	if f.missed {
		start = f.Restart
	}
	f.isAway, f.missed = false, false
	start()
}

// change changes the tools, and tells clients that are connected.
func (f *flapping) change(how func()) {
	f.missed = f.missed || f.isAway
	f.mu.Lock()
	how()
	server := f.mcp
	f.mu.Unlock()
	server.AddTool(&mcp.Tool{Name: "call", InputSchema: json.RawMessage(`{"type":"object"}`)}, runNothing)
}

func runNothing(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
}

// handler returns a handler that knows no session. It answers tools/list itself: the SDK would choose the order.
func (f *flapping) handler() http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: f.name, Version: "1"}, nil)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch method {
			case "server/discover": // it has sessions
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no"}
			case "tools/call":
				return runNothing(ctx, nil)
			}
			return next(ctx, method, req)
		}
	})
	server.AddTool(&mcp.Tool{Name: "call", InputSchema: json.RawMessage(`{"type":"object"}`)}, runNothing)
	f.mu.Lock()
	old := f.mcp
	f.mcp = server
	f.mu.Unlock()
	endAll(old)
	behind := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request struct {
			ID     json.RawMessage
			Method string
		}
		if err == nil {
			err = json.Unmarshal(body, &request)
		}
		if err == nil && request.Method == "tools/list" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":%s}}`, request.ID, f.list())
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		behind.ServeHTTP(w, r)
	})
}

// list returns the tools as JSON.
func (f *flapping) list() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	var text bytes.Buffer
	write(&text, f.tools, rand.New(rand.NewPCG(f.order, 0)))
	return text.Bytes()
}

// write writes a value as JSON, with the members of objects in the order that random chooses.
func write(to *bytes.Buffer, value any, random *rand.Rand) {
	switch v := value.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for i, name := range names {
			to.WriteString([]string{"{", ", "}[min(i, 1)])
			fmt.Fprintf(to, "%q: ", name)
			write(to, v[name], random)
		}
		to.WriteString("}")
	case []map[string]any:
		for i, one := range v {
			to.WriteString([]string{"[", ","}[min(i, 1)])
			write(to, one, random)
		}
		to.WriteString("]")
	default:
		data, _ := json.Marshal(v) // it can be encoded
		to.Write(data)
	}
}

// end ends the server and its sessions.
func (f *flapping) end() {
	f.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	endAll(f.mcp)
}

func endAll(server *mcp.Server) {
	if server == nil {
		return
	}
	for session := range server.Sessions() {
		if session.InitializeParams() != nil { // or else the SDK still connects it
			go session.Close()
		}
	}
}

// descriptions returns those of the tools that the server has, by the names that models see.
func (f *flapping) descriptions() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]string{}
	for _, tool := range f.tools {
		all[f.name+"__"+tool["name"].(string)] = tool["description"].(string)
	}
	return all
}
