package caller

import (
	"context"
	"sync"
)

// Values are the values of a context, until they are released. They do not end, and have no
// deadline. The methods may be called from any goroutine. A nil *Values has no values.
type Values struct {
	mu  sync.Mutex
	ctx context.Context // nil once released
}

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
