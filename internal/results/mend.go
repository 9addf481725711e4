package results

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/exact"
	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/wellformed"
)

// mender changes a result so that it can be decoded. It rewrites values that have another form, such as base64 without
// padding. It shows a content that it cannot read as text, and leaves out any other part that it cannot read.
type mender struct {
	odd   []string // what was replaced by text or left out
	left  int      // how many more elements of lists may be mended
	inner bool     // it mends the parts of a content
}

const (
	// maxMended bounds the elements of lists that are mended: each takes much longer than one that need not be.
	maxMended = 2_000
	// maxOdd bounds how many odd parts are named.
	maxOdd = 100
)

// strict are the members of a result that decide what becomes of the call or of the session, and the lists that were asked for.
// Without one of them, the result is lost.
var strict = map[string]bool{
	"protocolVersion": true, "supportedVersions": true, "resultType": true, "inputRequests": true, "requestState": true,
	"tools": true, "prompts": true, "resources": true, "resourceTemplates": true, "contents": true, "messages": true,
}

// keys are the members that tell an element of a list from other objects. Nobody could ask for a thing without its key.
var keys = map[reflect.Type]string{
	reflect.TypeFor[mcp.Tool](): "name", reflect.TypeFor[mcp.Prompt](): "name", reflect.TypeFor[mcp.PromptArgument](): "name", reflect.TypeFor[mcp.Icon](): "src",
	reflect.TypeFor[mcp.Resource](): "uri", reflect.TypeFor[mcp.ResourceTemplate](): "uriTemplate", reflect.TypeFor[mcp.ResourceContents](): "uri", reflect.TypeFor[message](): "content",
}

// essential are the members without which a content of a type shows nothing.
var essential = map[string]string{
	"text": "text", "image": "data", "audio": "data", "resource_link": "uri", "resource": "resource", "tool_use": "input", "tool_result": "content",
}

// mend returns a result of this type that can be decoded, and what is odd about it. It returns nil if there is none.
func mend(raw json.RawMessage, of reflect.Type) (mended json.RawMessage, odd []string) {
	m := mender{left: maxMended}
	if raw = bytes.TrimSpace(raw); of == reflect.TypeFor[callWire]() && len(raw) > 0 && raw[0] != '{' { // it is a content itself
		m.say("the result", raw, "is shown as its content")
		raw = slices.Concat([]byte(`{"content":`), raw, []byte("}"))
	}
	mended, ok := m.object("", raw, of, "")
	if !ok {
		return nil, nil
	}
	return mended, m.odd
}

// say notes that a part is odd, and what became of it. The part itself is not quoted.
func (m *mender) say(at string, raw json.RawMessage, became string) {
	switch len(m.odd) {
	case maxOdd:
		m.odd = append(m.odd, "there is more")
	case maxOdd + 1:
	default:
		m.odd = append(m.odd, fmt.Sprintf("%s is %s, and %s", strings.TrimPrefix(at, "."), cmp.Or(kinds[raw[0]], "a number"), became))
	}
}

// kinds are the kinds of values by the first byte.
var kinds = map[byte]string{'{': "an object that cannot be read", '[': "a list", '"': "a string", 'n': "null", 't': "true", 'f': "false"}

// fit returns a value that can be decoded into a type. It returns false if there is none.
func (m *mender) fit(at string, raw json.RawMessage, of reflect.Type) (json.RawMessage, bool) {
	isNull := string(raw) == "null"
	switch of {
	case reflect.TypeFor[*content]():
		return m.content(at, raw), true
	case reflect.TypeFor[*message]():
		of = reflect.TypeFor[messageWire]()
	case reflect.TypeFor[[]byte]():
		return encoded(raw)
	case reflect.TypeFor[mcp.InputRequestMap]():
		return raw, decodes(raw, of)
	}
	switch of.Kind() {
	case reflect.Pointer:
		if isNull {
			return raw, true
		}
		return m.fit(at, raw, of.Elem())
	case reflect.Interface, reflect.Map:
		return raw, (of.Kind() == reflect.Interface || isNull || raw[0] == '{') && !wellformed.IsTooDeep(raw)
	case reflect.Struct:
		needed := keys[of]
		if of == reflect.TypeFor[mcp.ResourceContents]() { // which says something without its URI
			needed = ""
		}
		return m.object(at, raw, of, needed)
	case reflect.Slice:
		return m.list(at, raw, of.Elem())
	case reflect.Int, reflect.Int64:
		return integer(raw)
	}
	return raw, decodes(raw, of)
}

// decodes reports whether a value can be decoded into a type.
func decodes(raw []byte, of reflect.Type) bool {
	_, err := guard.Call(func() (any, error) { return nil, Parse(raw, reflect.New(of).Interface()) })
	return err == nil
}

// object returns an object whose members can be decoded into the fields of a struct. It returns false if a member is there that
// cannot be, and that is needed or strict.
func (m *mender) object(at string, raw json.RawMessage, of reflect.Type, needed string) (json.RawMessage, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil, false
	}
	fields := fieldsOfJSON(of)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		field, known := fields[name]
		if !known {
			continue
		}
		value := members[name]
		fitting, ok := m.fit(at+"."+name, value, field)
		switch {
		case ok:
			members[name] = fitting
		case name == needed || at == "" && strict[name]:
			return nil, false
		default:
			if became := replace(members, name, of); became != "" {
				m.say(at+"."+name, value, became)
			}
		}
	}
	mended, err := json.Marshal(members)
	return mended, err == nil
}

// replace replaces a member that cannot be read, or deletes it, and returns what became of it. Of a cursor it returns "", because
// the list says so.
func replace(members map[string]json.RawMessage, name string, of reflect.Type) (became string) {
	value := members[name]
	delete(members, name)
	switch {
	case name == "nextCursor":
		members[name], _ = json.Marshal(OddCursor)
		return ""
	case name == "isError", name == "listChanged", name == "subscribe":
		members[name] = strconv.AppendBool(nil, isTrue(value))
		return "is read as " + string(members[name])
	case (name == "capabilities" || of == reflect.TypeFor[mcp.ServerCapabilities]()) && isTrue(value): // what is named is there
		members[name] = json.RawMessage("{}")
		return "is read as {}"
	case of == reflect.TypeFor[mcp.Implementation]() && (name == "name" || name == "version"):
		members[name], _ = json.Marshal(string(value))
		return "is shown as text"
	case of == reflect.TypeFor[mcp.ResourceContents]() && (name == "blob" || name == "text") && members["text"] == nil:
		members["text"] = shown(name, value)
		return "is shown as text"
	}
	return leftOut
}

const leftOut = "was left out"

// isTrue reports whether a value that is no boolean stands for true: a tool that has failed must not seem to have succeeded.
func isTrue(value json.RawMessage) bool {
	var text string
	if json.Unmarshal(value, &text) == nil {
		text = strings.ToLower(strings.TrimSpace(text))
		return text != "" && text != "0" && text != "false"
	}
	number, err := strconv.ParseFloat(string(value), 64)
	return string(value) != "false" && (err != nil || number != 0)
}

// fieldsOfJSON returns the types of the fields of a struct by their names in JSON.
func fieldsOfJSON(of reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && field.IsExported() {
			fields[name] = field.Type
		}
	}
	return fields
}

// list returns a list whose elements can be decoded into a type.
func (m *mender) list(at string, raw json.RawMessage, of reflect.Type) (json.RawMessage, bool) {
	elements, ok := m.elements(at, raw, of)
	if !ok {
		return nil, false
	}
	mended, err := json.Marshal(elements)
	return mended, err == nil
}

// elements returns the elements of a list that can be decoded into a type, without those that cannot be. Some elements may stand
// alone. When enough elements were mended, the others that cannot be decoded as they are count as odd together.
func (m *mender) elements(at string, raw json.RawMessage, of reflect.Type) (fitting []json.RawMessage, ok bool) {
	key := keys[of]
	if of.Kind() == reflect.Pointer {
		key = keys[of.Elem()]
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		var isOne bool
		if list, isOne = oneOf(raw, of, key); !isOne {
			return nil, false
		}
	}
	rest := 0
	fitting = make([]json.RawMessage, 0, len(list))
	for i, one := range list {
		if isUsual(one, of) {
			fitting = append(fitting, one)
			continue
		}
		if m.left--; m.left < 0 {
			rest++
			continue
		}
		place := fmt.Sprintf("%s[%d]", at, i)
		if name := textIn(one, key); name != "" {
			place += fmt.Sprintf(" (%.100q)", name)
		}
		its, ok := m.fit(place, one, of)
		if !ok || string(its) == "null" || !decodes(its, of) {
			m.say(place, one, leftOut)
			continue
		}
		fitting = append(fitting, its)
	}
	if rest > 0 {
		m.say(at, raw, fmt.Sprintf("%d of its elements were left out", rest))
	}
	if rest > 0 && of == reflect.TypeFor[*content]() {
		fitting = append(fitting, fmt.Appendf(nil, `{"type":"text","text":"[%d more contents that cannot be read]"}`, rest))
	}
	return fitting, true
}

// oneOf returns a list that has a value as its only element. An empty object is an empty list: some languages do not
// distinguish them.
func oneOf(raw json.RawMessage, of reflect.Type, key string) (list []json.RawMessage, is bool) {
	var members map[string]json.RawMessage
	switch {
	case of == reflect.TypeFor[*content]():
		return []json.RawMessage{raw}, true
	case key == "" || json.Unmarshal(raw, &members) != nil:
		return nil, false
	case len(members) == 0:
		return nil, true
	}
	return []json.RawMessage{raw}, members[key] != nil
}

// isUsual reports whether an element of a list can be decoded as it is. It may be false for one that can be.
func isUsual(one json.RawMessage, of reflect.Type) bool {
	switch {
	case string(one) == "null":
		return false
	case of != reflect.TypeFor[*content]():
		return decodes(one, of)
	case bytes.Contains(one, []byte(`"content"`)): // the JSON library takes quadratic time for contents in contents
		return false
	}
	var c content
	return Parse(one, &c) == nil && c.decoded() != nil
}

// textIn returns a member of an object that is a text, or "".
func textIn(raw json.RawMessage, name string) (text string) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil {
		json.Unmarshal(members[name], &text) //nolint:errcheck // then it is no text
	}
	return text
}

// content returns a content that can be decoded. It is a text if the given one cannot be read.
func (m *mender) content(at string, raw json.RawMessage) json.RawMessage {
	kind := textIn(raw, "type")
	if needed := essential[kind]; needed != "" && (!m.inner || kind != "tool_result") { // which does not nest
		odd, inner := m.odd, m.inner
		m.inner = true
		mended, ok := m.object(at, raw, reflect.TypeFor[content](), needed)
		m.inner = inner
		if ok && decodes(slices.Concat([]byte(`{"content":[`), mended, []byte("]}")), reflect.TypeFor[mcp.CallToolResult]()) {
			return mended
		}
		m.odd = odd
	}
	m.say(at, raw, "is shown as text")
	text := shown("content", raw)
	if raw[0] == '"' {
		text = raw
	}
	return slices.Concat([]byte(`{"type":"text","text":`), text, []byte("}"))
}

// shown returns a string that shows a value which cannot be read.
func shown(what string, raw json.RawMessage) json.RawMessage {
	text := string(raw)
	json.Unmarshal(raw, &text) //nolint:errcheck // it is no string then
	data, _ := json.Marshal("[" + what + " that cannot be read: " + text + "]")
	return data
}

// integer returns a number without a fraction of zero and without an exponent.
func integer(raw json.RawMessage) (json.RawMessage, bool) {
	if decodes(raw, reflect.TypeFor[int64]()) {
		return raw, true
	}
	number, same := exact.Float64(string(raw))
	return strconv.AppendInt(nil, int64(number), 10), same && number == math.Trunc(number) && math.Abs(number) < 1<<53
}

// encoded returns data as base64 with padding. It may be URL-safe, be without padding, have white space in it, or be a data URL.
func encoded(raw json.RawMessage) (json.RawMessage, bool) {
	if decodes(raw, reflect.TypeFor[[]byte]()) {
		return raw, true
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, false
	}
	if head, data, is := strings.Cut(text, ","); is && strings.HasPrefix(head, "data:") && strings.HasSuffix(head, ";base64") {
		text = data
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.Join(strings.Fields(text), ""))
	data, err := base64.RawStdEncoding.Strict().DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, false
	}
	mended, err := json.Marshal(data)
	return mended, err == nil
}

// hasNull reports whether there is a null among the things of a list.
func hasNull(result mcp.Result) bool {
	v := reflect.ValueOf(result).Elem()
	for i := range v.NumField() {
		list := v.Field(i)
		if list.Kind() != reflect.Slice || list.Type().Elem().Kind() != reflect.Pointer {
			continue
		}
		for j := range list.Len() {
			if list.Index(j).IsNil() {
				return true
			}
		}
	}
	return false
}
