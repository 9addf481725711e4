// Package clock writes times for people and models.
package clock

import "time"

// Text returns a time in whole seconds of UTC, as RFC 3339. It is not before the time: whoever waits until then has waited long enough.
func Text(at time.Time) string { return at.Add(time.Second - 1).UTC().Format(time.RFC3339) }
