package redact

import (
	"slices"
	"sync"
)

// recent is the values of headers that were sent of late.
type Recent struct {
	mu     sync.Mutex
	values []string // the last ones last
}

// add keeps a value, in place of the oldest when there are too many. It reports
// whether it was not there.
func (r *Recent) Add(value string, most int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.values, value) {
		return false
	}
	r.values = append(r.values[max(0, len(r.values)-most+1):], value)
	return true
}

// secrets appends the values.
func (r *Recent) AppendTo(all []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, value := range r.values {
		all = Append(all, value)
	}
	return all
}
