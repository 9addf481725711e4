// Package wellformed checks that JSON is valid Unicode. encoding/json silently replaces
// invalid text by U+FFFD, so that two different names can become one.
package wellformed

import (
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns an error if valid JSON contains bytes that are not UTF-8, or an escape
// that is half of a surrogate pair.
func JSON(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("is not valid UTF-8")
	}
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		unit, escaped := escape(data[i:])
		if !escaped {
			i++ // the character after a backslash may be a backslash
			continue
		}
		i += 5
		if !utf16.IsSurrogate(unit) {
			continue
		}
		low, _ := escape(data[i+1:])
		if utf16.DecodeRune(unit, low) == utf8.RuneError {
			return errors.New(`has an escape such as \ud800 that is half of a character`)
		}
		i += 6
	}
	return nil
}

// escape returns the value of the escape \uXXXX at the beginning of data.
func escape(data []byte) (unit rune, ok bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	value, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(value), err == nil
}
