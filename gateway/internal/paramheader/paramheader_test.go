package paramheader

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

const schema = `{"type": "object", "properties": {
	"region": {"type": "string", "x-mcp-header": "Region"},
	"size": {"type": "integer", "x-mcp-header": "Size"},
	"dry": {"type": "boolean", "x-mcp-header": "dry-run"},
	"plain": {"type": "string"},
	"where": {"type": "object", "properties": {"city": {"type": "object", "properties": {"name": {"type": "string", "x-mcp-header": "City"}}}}}
}}`

// said returns what is wrong with headers, given as names and values.
func said(t *testing.T, schema, arguments string, headers ...string) string {
	given := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		given.Add(headers[i], headers[i+1])
	}
	err := Check(json.RawMessage(schema), json.RawMessage(arguments), given)
	if err == nil {
		return ""
	}
	var wire *jsonrpc.Error
	require.ErrorAs(t, err, &wire)
	require.EqualValues(t, -32020, wire.Code)
	return wire.Message
}

func TestHeadersRepeatArguments(t *testing.T) {
	ok := func(arguments string, headers ...string) {
		t.Helper()
		require.Empty(t, said(t, schema, arguments, headers...))
	}
	ok(`{}`)
	ok(``, "Mcp-Param-Other", "x")
	ok(`{"region": null, "plain": "x"}`, "Mcp-Param-Region", "")
	ok(`{"region": "eu", "size": 42, "dry": false}`, "mcp-param-region", "eu", "Mcp-Param-SIZE", "42", "Mcp-Param-Dry-Run", "false")
	ok(`{"region": "", "size": 42}`, "Mcp-Param-Region", "", "Mcp-Param-Size", "42.0")
	ok(`{"size": 4.2e1}`, "Mcp-Param-Size", "=?base64?NDI=?=")
	ok(`{"region": " é"}`, "Mcp-Param-Region", "=?base64?IMOp?=")
	ok(`{"region": "=?base64?x"}`, "Mcp-Param-Region", "=?base64?x")
	ok(`{"where": {"city": {"name": "Bern"}}}`, "Mcp-Param-City", "Bern")
	ok(`{"where": {"city": "Bern"}}`)
	ok(`{"region": ["a server refuses this"], "size": 9007199254740993}`)

	wrong := func(want, arguments string, headers ...string) {
		t.Helper()
		require.Equal(t, want, said(t, schema, arguments, headers...))
	}
	wrong("Mcp-Param-Region, argument region: the header is missing", `{"region": "eu"}`)
	wrong("Mcp-Param-Region, argument region: the header is missing", `{"region": ""}`)
	wrong("Mcp-Param-Region, argument region: the header has another value", `{"region": "eu"}`, "Mcp-Param-Region", "EU")
	wrong("Mcp-Param-Region, argument region: the header is there, but the argument is not", `{"region": null}`, "Mcp-Param-Region", "eu")
	wrong("Mcp-Param-Region, argument region: the header is there more than once", `{"region": "eu"}`, "Mcp-Param-Region", "eu", "Mcp-Param-Region", "us")
	for _, value := range []string{"=?base64?Z?=", "=?base64?ZXV=?=", "=?base64?/w==?=", "=?base64?ZX\nU=?="} {
		wrong("Mcp-Param-Region, argument region: the header has invalid Base64", `{"region": "eu"}`, "Mcp-Param-Region", value)
	}
	for _, value := range []string{"43", "0x2a", "42 ", "4_2", "1e1", "NaN", "", "42.00001"} {
		wrong("Mcp-Param-Size, argument size: the header has another value", `{"size": 42}`, "Mcp-Param-Size", value)
	}
	wrong("Mcp-Param-dry-run, argument dry: the header has another value", `{"dry": true}`, "Mcp-Param-Dry-Run", "True")
	wrong("Mcp-Param-City, argument where.city.name: the header is missing", `{"where": {"city": {"name": "Bern"}}}`)
	wrong("Mcp-Param-City, argument where.city.name: the header is there, but the argument is not", `{"where": 1}`, "Mcp-Param-City", "Bern")
}

func TestWhatCannotBeReadInASchemaIsIgnored(t *testing.T) {
	for _, property := range []string{
		`1`, `null`, `{"type": "string"}`, `{"type": "object", "x-mcp-header": "A"}`, `{"type": ["string"], "x-mcp-header": "A"}`,
		`{"type": "string", "x-mcp-header": 7}`, `{"type": "string", "x-mcp-header": ""}`, `{"type": "string", "x-mcp-header": "A B"}`,
		`{"type": "string", "x-mcp-header": "A\n"}`, `{"x-mcp-header": "A"}`,
	} {
		one := `{"properties": {"a": ` + property + `, "b": {"type": "string", "x-mcp-header": "B"}}}`
		require.Empty(t, said(t, one, `{"a": "x"}`), property)
		require.Contains(t, said(t, one, `{"a": "x", "b": "x"}`), "Mcp-Param-B", "the others count")
	}
	for _, none := range []string{``, `true`, `[]`, `{"properties": []}`, `{"properties": 1}`, `{`} {
		require.Empty(t, said(t, none, `{"a": "x"}`), none)
	}
	require.Contains(t, said(t, `{"type": 7, "x-mcp-header": 7, "properties": {"a": {"type": "string", "x-mcp-header": "A"}}}`, `{"a": "x"}`), "missing")
}
