package toolset

import (
	"bytes"
	"encoding/json"
	"errors"
)

var errNoObject = errors.New("not a JSON object")

// argumentsOf returns the arguments of a call as a JSON object: see [Set.Call].
func argumentsOf(arguments any) (json.RawMessage, error) {
	var text []byte
	switch a := arguments.(type) {
	case json.RawMessage:
		text = bytes.Clone(a)
	case []byte:
		text = bytes.Clone(a)
	case string:
		text = []byte(a)
	default:
		var err error
		if text, err = json.Marshal(a); err != nil {
			return nil, err
		}
	}
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0, string(text) == "null":
		return json.RawMessage("{}"), nil
	case text[0] != '{' || !json.Valid(text):
		return nil, errNoObject
	}
	return text, nil
}
