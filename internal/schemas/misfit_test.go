package schemas

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestArgumentsThatDoNotFitAreNamedAndThoseThatCannotBeCheckedPass(t *testing.T) {
	const places = `{"type":"object","properties":{"place":{"type":"string"}},"required":["place"],"additionalProperties":false}`
	for name, test := range map[string]struct{ schema, arguments, err string }{
		"fits":            {places, `{"place":"Oslo"}`, ""},
		"missing":         {places, `{}`, `arguments: missing properties: ["place"]`},
		"none":            {places, ``, "missing properties"},
		"null":            {places, ` null`, "missing properties"},
		"none wanted":     {`{"type":"object"}`, `null`, ""},
		"type":            {places, `{"place":1}`, `arguments.place: has type "integer"`},
		"surplus":         {places, `{"place":"Oslo","hour":1}`, "has properties that the schema does not allow"},
		"malformed type":  {`{"type":"object","properties":{"a":{"type":"STRING"}}}`, `{"a":"x"}`, ""},
		"old draft":       {`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","required":["a"]}`, `{}`, ""},
		"draft 7":         {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["a"]}`, `{}`, "missing properties"},
		"no schema":       {``, `{}`, ""},
		"not an object":   {`5`, `{}`, ""},
		"circle":          {`{"$ref":"#"}`, `{}`, ""},
		"large schema":    {`{"type":"object","required":["a"],"description":"` + strings.Repeat("x", maxSchema) + `"}`, `{}`, ""},
		"deep schema":     {strings.Repeat(`{"properties":{"x":`, 400) + `{}` + strings.Repeat(`}}`, 400), `{"x":1}`, ""},
		"deep arguments":  {`{"required":["a"]}`, strings.Repeat(`{"x":`, 20) + `1` + strings.Repeat(`}`, 20), ""},
		"large arguments": {`{"required":["a"]}`, fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", maxArguments)), ""},
	} {
		err := CheckArguments(json.RawMessage(test.schema), json.RawMessage(test.arguments))
		if test.err == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, test.err, name)
	}
}
