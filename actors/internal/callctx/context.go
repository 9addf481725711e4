// Package callctx is the context of a call.
package callctx

import (
	"context"
	"sync"
	"time"
)

// Context is a context that ends when it is cancelled. It has a deadline, and does not end at it:
// the session of the call cancels it then, so that no call needs a timer of its own. One function that waits
// for its end costs one allocation; for anything else it is a [context.WithCancel], made when it is needed.
//
// All methods may be called from any goroutine: the session cancels the context while the bridge and the SDK wait for its
// end. So it has a lock, like the contexts of package context. It is held for a few instructions, and never while a function
// that waits runs.
type Context struct {
	values   Values
	deadline time.Time

	mu     sync.Mutex
	ended  bool
	waits  func()          // is called at the end, or nil
	turn   int             // counts the functions that have waited so
	std    context.Context // nil until it is needed
	cancel context.CancelFunc
}

// Values finds the values of a context.
type Values interface{ Value(key any) any }

// Init makes a zero context ready for use.
func (c *Context) Init(values Values, deadline time.Time) {
	c.values, c.deadline = values, deadline
}

// Cancel ends the context.
func (c *Context) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits != nil {
		go c.waits()
		c.waits = nil
	}
	if c.cancel != nil {
		c.cancel()
	}
	c.ended = true
}

// AfterFunc is what [context.AfterFunc] does with this context.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.waits != nil {
		return context.AfterFunc(c.standard(), f)
	}
	c.waits = f
	c.turn++
	turn := c.turn
	return func() bool { return c.stopWaiting(turn) }
}

// stopWaiting forgets the function with this turn. It returns false if that waits no more.
func (c *Context) stopWaiting(turn int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits == nil || c.turn != turn {
		return false
	}
	c.waits = nil
	return true
}

// standard returns a context of package context that ends with this one. The lock is held.
func (c *Context) standard() context.Context {
	if c.std == nil {
		c.std, c.cancel = context.WithCancel(valuesOnly{context.Background(), c.values})
		if c.ended {
			c.cancel()
		}
	}
	return c.std
}

// Deadline returns the deadline.
func (c *Context) Deadline() (time.Time, bool) { return c.deadline, true }

// Done is closed when the context has ended.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.standard().Done()
}

// Err returns [context.Canceled] when the context has ended.
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return context.Canceled
	}
	return nil
}

// Value returns a value.
func (c *Context) Value(key any) any {
	c.mu.Lock()
	std := c.std
	c.mu.Unlock()
	if std != nil {
		return std.Value(key) // and what ends contexts that are derived from it
	}
	return c.values.Value(key)
}

// valuesOnly is a context that does not end.
type valuesOnly struct {
	context.Context
	values Values
}

// Value returns a value.
func (v valuesOnly) Value(key any) any { return v.values.Value(key) }
