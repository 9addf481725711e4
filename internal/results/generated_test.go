package results

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// generator writes a result. Each byte of its source makes one choice: what is usual, if there are no more.
type generator struct {
	source []byte
	out    strings.Builder
}

func (g *generator) choose(n int) int {
	if len(g.source) == 0 {
		return 0
	}
	c := int(g.source[0])
	g.source = g.source[1:]
	return c % n
}

func (g *generator) one(of ...string) string { return of[g.choose(len(of))] }

// fields has the kinds of the members of each kind of object. Its kinds are those of value.
var fields = map[string][]string{
	"result": {
		"content:contents", "content:contents", "content:contents", "content:contents", "messages:messages", "messages:messages", "contents:resources", "tools:tools", "structuredContent:any", "isError:bool", "_meta:meta", "resultType:type", "inputRequests:inputs", "requestState:string", "ttlMs:int", "cacheScope:string", "nextCursor:string",
		"description:string", "messages:messages", "contents:resources", "tools:tools", "prompts:prompts", "resources:tools", "resourceTemplates:tools", "completion:completion",
	},
	"content": {
		"type:kind", "text:string", "data:bytes", "mimeType:string", "_meta:meta", "annotations:annotations", "resource:resource", "uri:string", "name:string", "title:string", "description:string",
		"size:int", "icons:icons", "id:string", "input:meta", "toolUseId:string", "content:contents", "structuredContent:any", "isError:bool",
	},
	"message":     {"role:string", "content:content"},
	"resource":    {"uri:string", "mimeType:string", "text:string", "blob:bytes", "_meta:meta"},
	"tool":        {"name:string", "title:string", "description:string", "inputSchema:any", "outputSchema:any", "annotations:annotations", "icons:icons", "_meta:meta", "uri:string", "uriTemplate:string", "size:int", "mimeType:string"},
	"prompt":      {"name:string", "title:string", "description:string", "arguments:prompts", "required:bool", "icons:icons", "_meta:meta"},
	"annotations": {"audience:strings", "priority:float", "lastModified:string", "readOnlyHint:bool", "destructiveHint:bool", "title:string"},
	"icon":        {"src:string", "mimeType:string", "sizes:strings", "theme:string"},
	"completion":  {"values:strings", "total:int", "hasMore:bool"},
	"meta":        {"a:any", "b:any", "a:string", "\\u0061:int"},
	"inputs":      {"x:input", "y:input"},
	"input":       {"method:asks", "params:asked"},
	"asked":       {"message:string", "requestedSchema:any", "mode:string", "maxTokens:int", "messages:messages", "_meta:meta"},
}

// lists has the kinds of the elements of arrays.
var lists = map[string]string{
	"contents": "content", "messages": "message", "resources": "resource", "tools": "tool", "prompts": "prompt", "icons": "icon", "strings": "string",
}

// value writes a value of a kind, or one of another kind.
func (g *generator) value(kind string, depth int) {
	switch odd := g.choose(128); {
	case odd == 127:
		g.out.WriteString(g.one("01", "-", "1.", ".5", "\"\x01\"", `"\x"`, "nul", "", "[1,]", `{"a":1,}`, `{null:1}`, "{}}"))
		return
	case odd > 120:
		kind = g.one("null", "any", "string", "int", "bool", "meta", "contents", "content", "strings", "bytes")
	}
	if depth > 8 {
		kind = "null"
	}
	if of, ok := lists[kind]; ok {
		g.out.WriteString(g.one("[", "[ "))
		count := g.choose(4)
		for i := range count {
			if i > 0 {
				g.out.WriteString(g.one(",", " ,\n"))
			}
			g.value(of, depth+1)
		}
		g.out.WriteString("]")
		return
	}
	if of, ok := fields[kind]; ok {
		g.object(of, depth)
		return
	}
	switch kind {
	case "any":
		g.value(g.one("string", "int", "float", "bool", "null", "meta", "strings"), depth+1)
	case "null":
		g.out.WriteString("null")
	case "bool":
		g.out.WriteString(g.one("true", "false", "null"))
	case "int":
		g.out.WriteString(g.one("5", "0", "-0", "-7", "1.5", "1e2", "9223372036854775807", "9223372036854775808", "null"))
	case "float":
		g.out.WriteString(g.one("0.5", "-0", "1e400", "-1E-400", "1e+5", "12345678901234567890", "null"))
	case "kind":
		g.out.WriteString(g.one(`"text"`, `"image"`, `"audio"`, `"resource_link"`, `"resource"`, `"tool_use"`, `"tool_result"`, `"x"`, `null`, `"te\u0078t"`))
	case "type":
		g.out.WriteString(g.one(`"complete"`, `""`, `"input_required"`, `"x<\ud800"`, `null`))
	case "asks":
		g.out.WriteString(g.one(`"elicitation/create"`, `"sampling/createMessage"`, `"roots/list"`, `"x"`))
	case "bytes":
		g.out.WriteString(g.one(`"aGVsbG8="`, `""`, `"aGVs\/\u0062=="`, `"a"`, `"aGVs\nbG8="`, `[1,2]`, `[]`, `null`, `"aGVsbG8="`, "\"aG\xff=\""))
	default:
		g.out.WriteString(g.one(`"a"`, `""`, `"é😀"`, `"\ud83d\ude00\ud800"`, "\"\xff\xc3\"", `"\"\\\n"`, `"<>&\u2028"`, `"user"`, `null`, `" null"`))
	}
}

// object writes an object with some of these members, which may be there more than once.
func (g *generator) object(of []string, depth int) {
	g.out.WriteString(g.one("{", "{ "))
	count := g.choose(7)
	for i := range count {
		name, kind, _ := strings.Cut(of[(i+g.choose(len(of)))%len(of)], ":")
		if i == 0 && g.choose(8) < 7 {
			name, kind, _ = strings.Cut(of[0], ":") // for contents: the type
		}
		if i > 0 {
			g.out.WriteString(g.one(",", ", ", "\t,\r\n"))
		}
		switch g.choose(64) {
		case 62:
			name = strings.ToUpper(name)
		case 63:
			name = `\u00` + strconv.FormatInt(int64(name[0]), 16) + name[1:]
		}
		g.out.WriteString(`"` + name + `"` + g.one(":", " : "))
		g.value(kind, depth+1)
	}
	g.out.WriteString("}")
}

// generate returns a result that these choices lead to.
func generate(choices []byte) []byte {
	g := &generator{source: choices}
	g.object(fields["result"], 0)
	return []byte(g.out.String())
}

// Decode comes to the same as the SDK with what is a result, more or less.
func FuzzGenerated(f *testing.F) {
	s := newSDK(f)
	for seed := range uint64(100) {
		choices := make([]byte, 20+2*seed)
		random := rand.NewChaCha8([32]byte{byte(seed)})
		random.Read(choices)
		f.Add(choices)
	}
	f.Fuzz(func(t *testing.T, choices []byte) { s.compareAll(t, generate(choices)) })
}

// Most of these results are valid.
func TestRandomResultsAreThoseOfTheSDK(t *testing.T) {
	s := newSDK(t)
	random := rand.NewChaCha8([32]byte{})
	choices := make([]byte, 400)
	for range 3000 {
		random.Read(choices)
		s.compareAll(t, generate(choices))
	}
}
