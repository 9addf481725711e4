package messages

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpactor/mcpactor/internal/caller"
)

const (
	// maxAttributes is the maximum number of [Attributes] of an operation.
	maxAttributes = 16
	// maxAttributeKey is the maximum length of the key of an attribute, in bytes.
	maxAttributeKey = 64
	// maxAttributeValue is the maximum length of the value of an attribute, in bytes.
	maxAttributeValue = 256
)

// Attributes are what a caller says about an operation: a small map of strings, such as the
// id of a user or of a run. Interceptors and credentials can read them, see
// [AttributesOf]. They are not sent to the server, not logged and not printed. As JSON they
// are an object.
//
// Attributes are immutable. The zero value has no attributes. An operation has at most 16, with
// keys of at most 64 bytes and values of at most 256 bytes. Otherwise it fails with
// [CodeInvalid], see [Attributes.Validate].
type Attributes struct {
	sorted *[]attribute // by key; nil if there are none
}

type attribute struct{ key, value string }

// NewAttributes returns attributes with a copy of a map.
func NewAttributes(from map[string]string) Attributes {
	if len(from) == 0 {
		return Attributes{}
	}
	sorted := make([]attribute, 0, len(from))
	for _, key := range slices.Sorted(maps.Keys(from)) {
		sorted = append(sorted, attribute{key, from[key]})
	}
	return Attributes{&sorted}
}

// entries returns the attributes in the order of their keys.
func (a Attributes) entries() []attribute {
	if a.sorted == nil {
		return nil
	}
	return *a.sorted
}

// find returns the index of a key, or where it would be.
func (a Attributes) find(key string) (i int, found bool) {
	return slices.BinarySearchFunc(a.entries(), key, func(e attribute, key string) int { return cmp.Compare(e.key, key) })
}

// With returns the attributes with one more, or with another value for a key.
func (a Attributes) With(key, value string) Attributes {
	i, found := a.find(key)
	changed := slices.Clone(a.entries())
	if found {
		changed[i].value = value
	} else {
		changed = slices.Insert(changed, i, attribute{key, value})
	}
	return Attributes{&changed}
}

// Get returns the value of a key. ok is false if there is none.
func (a Attributes) Get(key string) (value string, ok bool) {
	i, found := a.find(key)
	if !found {
		return "", false
	}
	return a.entries()[i].value, true
}

// Len returns the number of attributes.
func (a Attributes) Len() int { return len(a.entries()) }

// All yields the attributes in the order of their keys.
func (a Attributes) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, e := range a.entries() {
			if !yield(e.key, e.value) {
				return
			}
		}
	}
}

// Validate returns an error if there are too many attributes, or if a key or a value is too
// long, or has control characters or invalid UTF-8. The error names the attribute, and has
// no values.
func (a Attributes) Validate() error {
	if n := a.Len(); n > maxAttributes {
		return fmt.Errorf("attributes: has %d entries, at most %d are allowed", n, maxAttributes)
	}
	for _, e := range a.entries() {
		wrong := ""
		switch {
		case e.key == "":
			wrong = "the key is empty"
		case len(e.key) > maxAttributeKey:
			wrong = fmt.Sprintf("the key has %d bytes, at most %d are allowed", len(e.key), maxAttributeKey)
		case !isPlain(e.key):
			wrong = "the key has a control character or invalid UTF-8"
		case len(e.value) > maxAttributeValue:
			wrong = fmt.Sprintf("the value has %d bytes, at most %d are allowed", len(e.value), maxAttributeValue)
		case !isPlain(e.value):
			wrong = "the value has a control character or invalid UTF-8"
		default:
			continue
		}
		return fmt.Errorf("attributes[%.*q]: %s", maxAttributeKey, e.key, wrong)
	}
	return nil
}

// isPlain reports whether a text is valid UTF-8 without control characters.
func isPlain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// String returns the number of attributes.
func (a Attributes) String() string { return fmt.Sprintf("%d attributes", a.Len()) }

// GoString returns the number of attributes.
func (a Attributes) GoString() string { return a.String() }

// LogValue returns the number of attributes.
func (a Attributes) LogValue() slog.Value { return slog.StringValue(a.String()) }

// MarshalJSON returns an object.
func (a Attributes) MarshalJSON() ([]byte, error) { return json.Marshal(maps.Collect(a.All())) }

// UnmarshalJSON reads an object. It returns an error if the attributes are out of bounds.
func (a *Attributes) UnmarshalJSON(data []byte) error {
	var from map[string]string
	if err := json.Unmarshal(data, &from); err != nil {
		return fmt.Errorf("attributes: %w", err)
	}
	read := NewAttributes(from)
	if err := read.Validate(); err != nil {
		return err
	}
	*a = read
	return nil
}

// WithAttributes returns a context for operations of a client: they have these attributes,
// unless their headers have some.
func WithAttributes(ctx context.Context, a Attributes) context.Context {
	return context.WithValue(ctx, caller.AttributesKey{}, &a)
}

// AttributesOf returns the attributes of the operation that a context belongs to: the
// context of an interceptor, or of the credentials of a request. During a dial they are
// those of the first operation that waits for it.
func AttributesOf(ctx context.Context) Attributes {
	if a, ok := ctx.Value(caller.AttributesKey{}).(*Attributes); ok {
		return *a
	}
	return Attributes{}
}
