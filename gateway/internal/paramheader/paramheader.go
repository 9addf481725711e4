// Package paramheader checks the headers in which a client of protocol 2026-07-28 repeats arguments of a tool, so that proxies can
// read them (SEP-2243). The input schema of the tool says which: a property with "x-mcp-header": "Name" has the header
// Mcp-Param-Name.
package paramheader

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// prefix begins the names of the headers.
const prefix = "Mcp-Param-"

// Check returns the error for a client whose headers do not repeat the arguments as the schema says: a *[jsonrpc.Error] with the
// code -32020, which names the header and the argument. An argument that is there needs its header, and one that is absent or null
// must have none. What cannot be read in the schema is ignored, and so are arguments that no header can repeat.
func Check(schema, arguments json.RawMessage, headers http.Header) error {
	return check(schema, arguments, headers, nil)
}

// property is what matters of a property of a schema.
type property struct {
	kind       string // the type
	header     string // the header, or ""
	properties map[string]json.RawMessage
}

// read reads a property. A member that is absent or cannot be read is empty.
func read(schema json.RawMessage) (p property) {
	var members map[string]json.RawMessage
	if json.Unmarshal(schema, &members) != nil {
		return property{}
	}
	for name, to := range map[string]any{"type": &p.kind, "x-mcp-header": &p.header, "properties": &p.properties} {
		json.Unmarshal(members[name], to) //nolint:errcheck // it is empty then
	}
	if !slices.Contains(kinds, p.kind) || !token.MatchString(p.header) {
		p.header = ""
	}
	return p
}

// kinds are the types of properties that headers can repeat. The last one is not allowed to have one, but some servers check it.
var kinds = []string{"string", "integer", "boolean", "number"}

// token matches what can be in the name of a header.
var token = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

// check is Check for the properties of an object, which is at a path in the arguments.
func check(schema, object json.RawMessage, headers http.Header, path []string) error {
	properties := read(schema).properties
	var values map[string]json.RawMessage
	json.Unmarshal(object, &values) //nolint:errcheck // it has none then
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		its, at := read(properties[name]), append(slices.Clone(path), name)
		if its.header != "" {
			if err := compare(values[name], prefix+its.header, headers); err != "" {
				return &jsonrpc.Error{
					Code: mcp.CodeHeaderMismatch, Message: fmt.Sprintf("%s%s, argument %s: %s", prefix, its.header, strings.Join(at, "."), err),
				}
			}
		}
		if its.properties != nil {
			if err := check(properties[name], values[name], headers, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare returns what is wrong with the header for a value, or "".
func compare(value json.RawMessage, name string, headers http.Header) string {
	given := headers.Values(name)
	if len(given) > 1 {
		return "the header is there more than once"
	}
	var want any
	json.Unmarshal(value, &want) //nolint:errcheck // it is absent then
	text, hasText := "", true
	switch v := want.(type) {
	case nil:
		if len(given) > 0 && given[0] != "" {
			return "the header is there, but the argument is not"
		}
		return ""
	case string:
		text = v
	case bool:
		text = strconv.FormatBool(v)
	case float64:
		hasText = isSafe(v)
	default:
		return "" // the server says that the type is wrong
	}
	if len(given) == 0 {
		if !hasText {
			return "" // clients do not write such a number
		}
		return "the header is missing"
	}
	said, ok := Decode(given[0])
	if !ok {
		return "the header has invalid Base64"
	}
	if number, is := want.(float64); is {
		if got, err := strconv.ParseFloat(said, 64); err != nil || !decimal.MatchString(said) || got != number {
			return "the header has another value"
		}
		return ""
	}
	if said != text {
		return "the header has another value"
	}
	return ""
}

// isSafe reports whether a number is an integer that a float64 has without loss.
func isSafe(number float64) bool {
	const most = 1<<53 - 1
	return number >= -most && number <= most && number == float64(int64(number))
}

// decimal matches numbers as headers have them.
var decimal = regexp.MustCompile(`^-?\d+(\.\d+)?$`)

// Decode returns the value of a header that repeats a part of a request, which is Base64 if it cannot be a header as it is.
func Decode(value string) (text string, ok bool) {
	encoded, begins := strings.CutPrefix(value, "=?base64?")
	encoded, ends := strings.CutSuffix(encoded, "?=")
	if !begins || !ends {
		return value, true
	}
	data, err := base64.StdEncoding.Strict().DecodeString(encoded)
	return string(data), err == nil && utf8.Valid(data) && !strings.ContainsAny(encoded, "\r\n")
}
