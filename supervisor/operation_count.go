package supervisor

import (
	"context"
	"slices"
	"sync"

	"github.com/mcpactor/mcpactor/messages"
)

// operationCount counts the operations that run in interceptors. It is not an actor,
// because the actors do not wait for interceptors that do not return.
type operationCount struct {
	mu    sync.Mutex
	count int
	none  chan struct{} // closed when count becomes zero; nil while it is zero
}

// around returns the interceptors, with a count around the first one.
func (r *operationCount) around(interceptors []Interceptor) []Interceptor {
	if len(interceptors) == 0 {
		return nil
	}
	counted := slices.Clone(interceptors)
	counted[0] = func(next Runner) Runner {
		run := interceptors[0](next)
		if run == nil {
			return nil
		}
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			r.add(+1)
			defer r.add(-1)
			return run(ctx, op)
		}
	}
	return counted
}

// add changes the count.
func (r *operationCount) add(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == 0 {
		r.none = make(chan struct{})
	}
	if r.count += n; r.count == 0 {
		close(r.none)
		r.none = nil
	}
}

// wait waits until the count is zero or ctx ends, and returns the count.
func (r *operationCount) wait(ctx context.Context) int {
	r.mu.Lock()
	none := r.none
	r.mu.Unlock()
	if none != nil {
		select {
		case <-none:
		case <-ctx.Done():
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}
