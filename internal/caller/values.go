package caller

import (
	"context"
	"sync"
	"time"
)

// Values are a context with the values of another one, until they are released. They do not end, and have no
// deadline. The methods may be called from any goroutine. A nil *Values has no values.
type Values struct {
	mu  sync.Mutex
	ctx context.Context // nil once released
}

var _ context.Context = (*Values)(nil)

// Deadline says that there is none.
func (*Values) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Done returns nil.
func (*Values) Done() <-chan struct{} { return nil }

// Err returns nil.
func (*Values) Err() error { return nil }

// Hold makes v the values of ctx.
func (v *Values) Hold(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ctx = ctx
}

// Release forgets the context.
func (v *Values) Release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ctx = nil
}

// Value returns the value of a key, or nil if there is none, if it is hidden, or after
// Release.
func (v *Values) Value(key any) any {
	if v == nil || Hides(key) {
		return nil
	}
	v.mu.Lock()
	ctx := v.ctx
	v.mu.Unlock()
	if ctx == nil {
		return nil
	}
	return ctx.Value(key)
}
