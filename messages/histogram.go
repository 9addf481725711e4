package messages

import "time"

// histogramBounds are the upper bounds of the buckets of a [Histogram].
var histogramBounds = [...]time.Duration{
	100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond,
	10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second,
	10 * time.Second, 20 * time.Second, 50 * time.Second,
	100 * time.Second, 200 * time.Second, 500 * time.Second,
}

// Histogram counts durations by their length. The zero value has counted none. It is not
// safe for concurrent use.
type Histogram struct {
	// Counts are the numbers of durations by their length: each of those up to [Histogram.Bound],
	// and above the bound before it. The last number is of the durations above all bounds.
	Counts [len(histogramBounds) + 1]uint64 `json:"counts"`
	// Sum is the sum of all durations.
	Sum time.Duration `json:"sum"`
}

// Bound returns the longest duration that Counts[i] counts. ok is false for the last one, which
// has no bound.
func (*Histogram) Bound(i int) (bound time.Duration, ok bool) {
	if i == len(histogramBounds) {
		return 0, false
	}
	return histogramBounds[i], true
}

// Count returns how many durations were counted.
func (h *Histogram) Count() (n uint64) {
	for _, count := range h.Counts {
		n += count
	}
	return n
}
