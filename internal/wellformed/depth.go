package wellformed

import "bytes"

// MaxDepth bounds how deep objects and arrays are nested, as in the SDK.
const MaxDepth = 1000

// IsTooDeep reports whether JSON is nested so deep that the SDK refuses to decode it.
func IsTooDeep(data []byte) bool {
	return bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) > MaxDepth && depth(data) > MaxDepth
}

// depth returns how deep objects and arrays are nested.
func depth(raw []byte) (deepest int) {
	open, inString, escaped := 0, false, false
	for _, b := range raw {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = b == '\\', b != '"'
		case b == '"':
			inString = true
		case b == '{' || b == '[':
			open++
			deepest = max(deepest, open)
		case (b == '}' || b == ']') && open > 0:
			open--
		}
	}
	return deepest
}
