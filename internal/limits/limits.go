// Package limits says what the limits of all configurations mean: 0 is the default, -1 is no limit, and any other negative
// value is invalid.
package limits

import (
	"fmt"
	"time"
)

// limit is a number, or a duration.
type limit interface{ int | time.Duration }

// most returns the largest limit: a sum of such numbers does not overflow, nor does a time plus such a duration.
func most[T limit]() T {
	var most any = 1 << 24
	if _, is := any(T(0)).(time.Duration); is {
		most = 10 * 365 * 24 * time.Hour
	}
	return most.(T)
}

// Check returns an error that names a limit that is invalid, or nil.
func Check[T limit](name string, value T) error {
	switch most := most[T](); {
	case value < -1:
		return fmt.Errorf("%s: %v is negative: %v is no limit", name, value, T(-1))
	case value > most:
		return fmt.Errorf("%s: %v is more than %v: %v is no limit", name, value, most, T(-1))
	}
	return nil
}

// Of returns a limit, or one that is never reached for -1.
func Of[T limit](value T) T {
	if value < 0 {
		return most[T]()
	}
	return value
}
