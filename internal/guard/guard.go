// Package guard calls code that may panic, such as hooks of the user, and turns a panic into an
// error.
package guard

import (
	"fmt"
	"runtime/debug"
)

// Panic is the error of code that panicked.
type Panic struct {
	// Value is the argument of the panic. It may contain secrets.
	Value any
	// Stack is the stack of the goroutine that panicked.
	Stack []byte
}

// New returns the error for a panic with this value. Call it in the function that recovered.
func New(value any) *Panic { return &Panic{value, debug.Stack()} }

// Error returns the value and the stack.
func (p *Panic) Error() string { return fmt.Sprintf("%s\n%s", p.Brief(), p.Stack) }

// Brief returns the value without the stack.
func (p *Panic) Brief() string { return fmt.Sprint("panic: ", p.Value) }

// Call calls f. A panic of f is returned as a [*Panic].
func Call[T any](f func() (T, error)) (value T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = New(r)
		}
	}()
	return f()
}
