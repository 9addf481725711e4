package mcpbridge

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// H-E3: an error that is wrapped still has the text for the caller, and its own text never
// contains it.
func TestWordsForTheCallerSurviveWrapping(t *testing.T) {
	died := &Error{Class: Lost, Detail: "the process exited", Quote: "out of memory"}
	for name, test := range map[string]struct {
		err  *Error
		want string
	}{
		"itself":     {died, "the process exited: out of memory"},
		"in another": {&Error{Detail: "set-up: the process exited", Err: died}, "set-up: the process exited: out of memory"},
		"deeper":     {&Error{Detail: "x", Err: fmt.Errorf("a: %w", &Error{Err: died})}, "x: out of memory"},
		"none":       {&Error{Detail: "x", Err: fmt.Errorf("y")}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, test.err.ForCaller())
			require.NotContains(t, test.err.Error(), "out of memory")
		})
	}
}

// A function that returns a nil *Error as an error says so instead of causing a panic later.
func TestNilErrorIsNamed(t *testing.T) {
	var none *Error
	for _, err := range []error{none, fmt.Errorf("wrapped: %w", error(none))} {
		require.Contains(t, AsError(err).Error(), "a nil *mcpbridge.Error was returned as an error")
		require.Equal(t, Internal, AsError(err).Class)
	}
}
