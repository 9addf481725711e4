// Package identity returns identities that are never reused and never collide.
package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/guard"
)

var (
	mu    sync.Mutex
	names = map[any]string{} // by weak.Pointer
)

// Of returns an identity that no other value ever gets, unlike the address of a value: no later one, and none in another
// process. The identity of nil is "".
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

// Sum is a hash of lists of texts. It does not reveal them. Two sums are equal only if their lists have the same texts, byte
// by byte, whether or not these are UTF-8.
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

// OfCapabilities returns an identity of capabilities: equal ones are declared in the same way. It is empty for none.
func OfCapabilities(can *mcp.ClientCapabilities) string {
	if can == nil {
		return ""
	}
	text, err := guard.Call(func() ([]byte, error) { // may have types of the user
		return json.Marshal(struct {
			*mcp.ClientCapabilities
			Roots *mcp.RootCapabilities `json:"roots,omitempty"`
		}{can, can.RootsV2})
	})
	switch {
	case err != nil: // they cannot be declared either
		return "nothing that can be encoded"
	case string(text) == "{}":
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}
