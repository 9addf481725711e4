// Package oddtest generates results of servers that are odd in one place, for tests: each kind of JSON value in each field, and
// each form of base64. It serves them over HTTP, HTTP+SSE and stdio.
package oddtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// results are what a server answers, with all fields. Each string and each number in them is there once.
var results = map[string]string{
	"tools/call": `{"content":[
		{"type":"text","text":"m00","_meta":{"a":"m01"},"annotations":{"audience":["m02"],"lastModified":"m03","priority":0.104}},
		{"type":"image","data":"bTA1bTA1","mimeType":"m06"},
		{"type":"audio","data":"bTA3bTA3","mimeType":"m08"},
		{"type":"resource_link","uri":"m09","name":"m10","title":"m11","description":"m12","mimeType":"m13","size":114,"icons":[{"src":"m15","mimeType":"m16","sizes":["m17"],"theme":"m18"}]},
		{"type":"resource","resource":{"uri":"m19","mimeType":"m20","text":"m21","_meta":{"a":"m22"}}},
		{"type":"resource","resource":{"uri":"m23","mimeType":"m24","blob":"bTI1bTI1"}}],
		"structuredContent":{"a":["m26",{"b":127.5}]},"isError":false,"_meta":{"a":"m28"},"resultType":"complete","inputRequests":{},"requestState":"m29"}`,
	"tools/list": `{"tools":[
		{"name":"first","title":"m01","description":"m02","inputSchema":{"type":"object","properties":{"m03":{"maximum":104.5}}},"outputSchema":{"type":"object","title":"m05"},
			"annotations":{"title":"m06","readOnlyHint":true,"idempotentHint":true,"destructiveHint":true,"openWorldHint":true},"icons":[{"src":"m07"}],"_meta":{"a":"m08"}},
		{"name":"second","description":"m09","inputSchema":{"type":"object"}}],"_meta":{"a":"m10"},"resultType":"complete"}`,
	"prompts/list": `{"prompts":[
		{"name":"m00","title":"m01","description":"m02","arguments":[{"name":"m03","title":"m04","description":"m05","required":true},{"name":"m06"}],"icons":[{"src":"m07"}],"_meta":{"a":"m08"}},
		{"name":"m09"}],"_meta":{"a":"m10"},"resultType":"complete"}`,
	"resources/list": `{"resources":[
		{"uri":"m00","name":"m01","title":"m02","description":"m03","mimeType":"m04","size":105,"annotations":{"audience":["m06"],"priority":0.107},"icons":[{"src":"m08"}],"_meta":{"a":"m09"}},
		{"uri":"m10","name":"m11"}],"_meta":{"a":"m12"},"resultType":"complete"}`,
	"resources/templates/list": `{"resourceTemplates":[
		{"uriTemplate":"m00","name":"m01","title":"m02","description":"m03","mimeType":"m04","annotations":{"audience":["m05"]},"icons":[{"src":"m06"}],"_meta":{"a":"m07"}},
		{"uriTemplate":"m08","name":"m09"}],"_meta":{"a":"m10"},"resultType":"complete"}`,
	"resources/read": `{"contents":[{"uri":"m00","mimeType":"m01","text":"m02","_meta":{"a":"m03"}},{"uri":"m04","mimeType":"m05","blob":"bTA2bTA2"}],"_meta":{"a":"m07"},"resultType":"complete","inputRequests":{},"requestState":"m08"}`,
	"prompts/get": `{"description":"m00","messages":[
		{"role":"user","content":{"type":"text","text":"m01","_meta":{"a":"m02"}}},
		{"role":"assistant","content":{"type":"image","data":"bTAzbTAz","mimeType":"m04"}}],"_meta":{"a":"m05"},"resultType":"complete","inputRequests":{},"requestState":"m06"}`,
	"completion/complete": `{"completion":{"values":["m00","m01"],"total":102,"hasMore":true},"_meta":{"a":"m03"},"resultType":"complete"}`,
}

// introductions are what a server says about itself.
var introductions = map[string]string{
	"initialize": `{"protocolVersion":"2025-06-18","capabilities":{
		"tools":{"listChanged":false},"prompts":{"listChanged":false},"resources":{"subscribe":false,"listChanged":false},"logging":{},"completions":{},
			"experimental":{"m00":{"a":"m01"}},"extensions":{"m02":{"a":"m03"}}},
		"serverInfo":{"name":"m04","title":"m05","version":"m06","websiteUrl":"m07","icons":[{"src":"m08"},{"src":"m09","sizes":["m10"]}]},"instructions":"m11","_meta":{"a":"m12"}}`,
	"server/discover": `{"supportedVersions":["2026-07-28","m00"],"capabilities":{"tools":{},"prompts":{},"logging":{},"experimental":{"m01":{"a":"m02"}}},
		"instructions":"m03","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m04","version":"m05"}},"resultType":"complete"}`,
}

// values are of each kind of JSON value.
var values = []string{
	`null`, `true`, `false`, `0`, `-7`, `1.5`, `12.0`, `9007199254740993`, `1e400`, `1e-400`, `""`, `"odd"`, `"5"`, `"true"`, `[]`, `[5]`, `["odd"]`, `{}`, `{"odd":7}`, `[null]`, `[{"odd":[{}]}]`,
}

// encodings are forms of the data in base64 whose usual form is MDAwPj8_ in the URL-safe alphabet.
var encodings = []string{
	`"data:image/png;base64,MDAwPj8/"`, `"MDAwPj8_"`, `"MDAw\nPj8/\n"`, `" MDAwPj8/ "`, `"data:;base64,MDAw Pj8_"`, `"MDAwPj8"`, `"MDAwPj8="`, `"https://example.com/a.png"`, `"%%%"`, `[77,68]`,
}

// Odd is a result that is odd in one place.
type Odd struct {
	Method string
	// Name says what is odd.
	Name string
	// Result is the result as JSON.
	Result string
	// Path is the place, and Value the JSON that is there.
	Path, Value    string
	others, beside []string // the strings and numbers in all other places, and those of them that are not of the same item
	item           string   // the beginning of the path, such as "tools[0]", or empty
}

// Lost returns the strings and numbers in other places that are neither in a result as the user has it, nor in one of the things
// that were left out according to the remarks on it.
func (o Odd) Lost(result string, remarks []string) (lost []string) {
	wanted := o.others
	for _, remark := range remarks {
		if o.item != "" && strings.HasPrefix(remark, o.item) && strings.HasSuffix(remark, "left out") {
			wanted = o.beside
		}
	}
	for _, one := range wanted {
		if !strings.Contains(result, one) {
			lost = append(lost, one)
		}
	}
	return lost
}

// IsShown reports whether the odd value itself is in a result as the user has it, in some form, or in the remarks on it. What says
// nothing, such as an empty list, need not be.
func (o Odd) IsShown(result string, remarks []string) bool {
	if strings.Contains(strings.Join(remarks, "\n"), o.item) && len(remarks) > 0 {
		return true
	}
	switch o.Value {
	case `null`, `""`, `0`, `false`, `true`, `[]`, `{}`, `[null]`, `{"odd":7}`, `[{"odd":[{}]}]`: // the last have nothing but members that may be unknown
		return true
	case `1e-400`, `9007199254740993`:
		if strings.HasSuffix(o.Path, "priority") { // which is a float64
			return true
		}
	case `12.0`:
		return strings.Contains(result, "12")
	}
	for _, form := range append(forms, strings.Trim(o.Value, `"`)) {
		if strings.Contains(result, form) {
			return true
		}
	}
	return strings.Contains(result, o.Value)
}

// IsFatal reports whether the result is lost: the odd value stands in place of the list that was asked for, or of a member that decides
// what becomes of the request.
func (o Odd) IsFatal() bool {
	switch o.Path {
	case "protocolVersion":
		return true
	case "resultType":
		return o.Value != `null` && o.Value != `""`
	case "requestState":
		return o.Value != `null` && o.Value[0] != '"'
	case "inputRequests":
		return o.Value != `null` && o.Value != `{}`
	case "tools", "prompts", "resources", "resourceTemplates", "contents", "messages":
		return o.Value != "null" && o.Value != "{}" && o.Value[0] != '['
	}
	return false
}

// forms are the bytes of the encodings in the usual form.
var forms = []string{"MDAwPj8/", "MDAwPj8", "TUQ=", "BQ=="}

// All returns all odd results of a method, or of all methods but those of the handshake if that is empty.
func All(method string) (all []Odd) {
	methods := []string{method}
	if method == "" {
		methods = slices.Sorted(maps.Keys(results))
	}
	for _, m := range methods {
		var result any
		json.Unmarshal([]byte(results[m]+introductions[m]), &result) //nolint:errcheck // it is JSON
		for _, at := range places(result, nil) {
			odd := values
			if name := fmt.Sprint(at[len(at)-1]); name == "data" || name == "blob" {
				odd = slices.Concat(values, encodings)
			}
			for _, value := range odd {
				o := Odd{Method: m, Path: path(at), Value: value, Result: encode(with(result, at, json.RawMessage(value))), others: leaves(with(result, at, nil), nil)}
				o.beside = o.others
				o.Name = m + " " + o.Path + " " + value
				if len(at) > 1 {
					o.item, o.beside = path(at[:2]), leaves(with(result, at[:2], nil), nil)
				}
				all = append(all, o)
			}
		}
	}
	return all
}

// Some returns n of all odd results, drawn with a seed.
func Some(method string, n int, seed uint64) []Odd {
	all := All(method)
	r := rand.New(rand.NewPCG(seed, seed))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

// places returns the paths of all values in a value but itself.
func places(value any, at []any) (all [][]any) {
	add := func(key, in any) {
		its := append(slices.Clone(at), key)
		all = append(append(all, its), places(in, its)...)
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			add(name, value[name])
		}
	case []any:
		for i, one := range value {
			add(i, one)
		}
	}
	return all
}

func path(at []any) (text string) {
	for _, key := range at {
		if i, is := key.(int); is {
			text += fmt.Sprintf("[%d]", i)
		} else {
			text += fmt.Sprint(".", key)
		}
	}
	return strings.TrimPrefix(text, ".")
}

// with returns a value with another one at a place.
func with(value any, at []any, other any) any {
	if len(at) == 0 {
		return other
	}
	switch v := value.(type) {
	case map[string]any:
		v = maps.Clone(v)
		v[at[0].(string)] = with(v[at[0].(string)], at[1:], other)
		return v
	case []any:
		v = slices.Clone(v)
		v[at[0].(int)] = with(v[at[0].(int)], at[1:], other)
		return v
	}
	return value
}

// leaves returns the strings and numbers in a value that are there once.
func leaves(value any, all []string) []string {
	switch v := value.(type) {
	case string:
		if v != "complete" && v != "object" && v != "text" && v != "image" && v != "audio" && v != "resource" {
			all = append(all, v)
		}
	case float64:
		all = append(all, strconv.FormatFloat(v, 'g', -1, 64))
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = leaves(v[name], all)
		}
	case []any:
		for _, one := range v {
			all = leaves(one, all)
		}
	}
	return all
}

func encode(value any) string {
	data, _ := json.Marshal(value) // it was JSON
	return string(data)
}
