// Package identity tells things apart: two have the same identity only if they are the same.
package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"runtime"
	"slices"
	"sync"
	"weak"
)

var (
	mu    sync.Mutex
	names = map[any]string{} // by weak.Pointer
)

// Of returns the identity of a value in memory, or "" for nil. No other value gets it, in this process or in another one:
// the address of a value may be that of another one later.
func Of[T any](value *T) string {
	if value == nil {
		return ""
	}
	at := weak.Make(value)
	mu.Lock()
	defer mu.Unlock()
	if names[at] == "" {
		names[at] = rand.Text()
		runtime.AddCleanup(value, forget, any(at))
	}
	return names[at]
}

// forget forgets the identity of a value that is no longer in memory.
func forget(at any) {
	mu.Lock()
	defer mu.Unlock()
	delete(names, at)
}

// Sum is a hash of lists of texts, which it does not reveal. Two are equal only if the texts are, byte by byte and one by
// one, whether or not they are UTF-8.
type Sum struct{ hash hash.Hash }

// NewSum returns a hash of no list.
func NewSum() Sum { return Sum{sha256.New()} }

// Add adds a list.
func (s Sum) Add(list ...string) {
	fmt.Fprintf(s.hash, "%d;", len(list))
	for _, text := range list {
		fmt.Fprintf(s.hash, "%d:%s", len(text), text)
	}
}

// AddMap adds the names and the values of a map.
func (s Sum) AddMap(values map[string]string) {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, name, values[name])
	}
	s.Add(list...)
}

// String returns the hash in hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s.hash.Sum(nil)) }
