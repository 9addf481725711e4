package results

import (
	"errors"

	sdkjson "github.com/segmentio/encoding/json"

	"github.com/mcpactor/mcpactor/internal/wellformed"
)

var errTooDeep = errors.New("the result is nested too deep")

// Parse decodes raw into a struct, as the SDK does: nothing may be nested too deep, the syntax is
// checked before any type, and what follows the first value is ignored. It copies what it needs of raw.
func Parse(raw []byte, into any) error {
	if wellformed.IsTooDeep(raw) {
		return errTooDeep
	}
	if !sdkjson.Valid(raw) { // there may be more behind it
		var value sdkjson.RawMessage
		if _, err := sdkjson.Parse(raw, &value, sdkjson.ZeroCopy); err != nil {
			return err
		}
		raw = value
	}
	_, err := sdkjson.Parse(raw, into, sdkjson.DontMatchCaseInsensitiveStructFields)
	return err
}
