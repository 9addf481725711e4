package toolset

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// Pool has a [Toolset] for each scope in use, such as a conversation whose end nobody announces.
// A toolset that is not used for some time is closed, and [Pool.Get] then makes a new one. Its methods
// may be called from any goroutine. Close it: until then it is subscribed to events.
type Pool struct {
	system  *actor.ActorSystem
	backend Backend
	cfg     PoolConfig
	owners  owners

	feed        *feed // of all toolsets
	unsubscribe func()

	mu     sync.Mutex // never held while a toolset is closed
	closed bool
	scopes map[string]*pooled
	told   map[string]sessions     // of the scopes whose toolsets were closed because they were idle
	shown  map[string]conversation // of these; they are large
}

// pooled is the toolset of a scope.
type pooled struct {
	tools *Toolset
	timer *time.Timer // nil if toolsets are never idle
	owner string      // what nameOf returns
}

// maxTold bounds the scopes whose sessions a Pool remembers, and maxShown those whose tools it remembers.
const maxTold, maxShown = 1 << 14, 1 << 8

// PoolConfig is the configuration of a [Pool].
type PoolConfig struct {
	// Config returns the configuration of the toolset of a scope. Its Scope is replaced by the scope.
	// It is called while other callers of the pool wait.
	Config func(scope string) Config
	// IdleTimeout is how long a toolset is kept that nobody uses. The calls of its methods, and uses
	// that are sent to it, count as its use. Defaults to 1 h; -1 means that idle toolsets are kept.
	IdleTimeout time.Duration
}

// NewPool returns a pool of toolsets for servers of a backend, as [New] does for one. The error names the
// fields of cfg that are wrong.
func NewPool(system *actor.ActorSystem, backend Backend, cfg PoolConfig) (*Pool, error) {
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, time.Hour)
	err := isUsable(system, backend)
	if cfg.Config == nil {
		err = errors.Join(err, errors.New("toolset: config: is nil: return the configuration of the toolset of a scope"))
	}
	if cfg.IdleTimeout < -1 {
		err = errors.Join(err, errors.New("toolset: idleTimeout: is negative, and not -1"))
	}
	if err != nil {
		return nil, err
	}
	p := &Pool{system: backend.System(), backend: backend, cfg: cfg, scopes: map[string]*pooled{}, told: map[string]sessions{}, shown: map[string]conversation{}}
	p.owners = owners{system: p.system, ended: p.end}
	p.feed = newFeed()
	p.unsubscribe = backend.Subscribe(p.feed.onEvent)
	return p, nil
}

// Get returns the toolset of a scope, and makes it if there is none. Get it for each request of a model
// and do not keep it for longer, because it may be closed when it is idle. A new toolset still knows
// which sessions the model was told of, and which tools it was shown, see [Config.Stability]: the tools for up to 256
// scopes. The error is that of [New], or a [*messages.Failure] of code [messages.CodeClosed].
func (p *Pool) Get(scope string) (*Toolset, error) {
	return p.get(scope, nil)
}

// Bind returns the toolset of a scope as [Pool.Get] does, and closes it when an actor terminates. The
// last Bind applies. To close the sessions of the scope as well, send a [messages.Bind].
func (p *Pool) Bind(scope string, owner *actor.PID) (*Toolset, error) {
	t, err := p.get(scope, owner)
	if err == nil {
		p.owners.watch(owner) // if it has terminated, this ends the toolset
	}
	return t, err
}

// get is Get, and sets the owner unless that is nil.
func (p *Pool) get(scope string, owner *actor.PID) (*Toolset, error) {
	scope = messages.Key{Scope: scope}.Normal().Scope
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed()
	}
	one := p.scopes[scope]
	if one == nil || !one.tools.touch() {
		cfg := p.cfg.Config(scope)
		cfg.Scope = scope
		t, err := newToolset(p.system, p.backend, cfg, p.feed)
		if err != nil {
			return nil, err
		}
		if told := p.told[scope]; told != nil {
			t.told = told
		}
		t.conversation = p.shown[scope]
		p.drop(scope)
		one = &pooled{tools: t}
		if p.cfg.IdleTimeout != -1 {
			one.timer = time.AfterFunc(p.cfg.IdleTimeout, func() {
				if p.forget(scope, one) {
					one.tools.Close()
				}
			})
		}
		p.scopes[scope] = one
	}
	if owner != nil {
		one.owner = nameOf(owner)
	}
	return one.tools, nil
}

// forget removes a toolset that is idle, and reports whether it did.
func (p *Pool) forget(scope string, one *pooled) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.scopes[scope] != one {
		return false
	}
	wait, told, shown := one.tools.endIdle(p.cfg.IdleTimeout)
	if wait > 0 {
		one.timer.Reset(wait)
		return false
	}
	delete(p.scopes, scope)
	if len(told) > 0 {
		makeRoom(p.told, maxTold)
		p.told[scope] = told
	}
	if !shown.isEmpty() {
		makeRoom(p.shown, maxShown)
		p.shown[scope] = shown
	}
	return true
}

// makeRoom removes elements until there are fewer than most.
func makeRoom[V any](of map[string]V, most int) {
	for key := range of {
		if len(of) < most {
			return
		}
		delete(of, key)
	}
}

// drop forgets what is remembered of a scope. The caller holds the mutex.
func (p *Pool) drop(scope string) {
	delete(p.told, scope)
	delete(p.shown, scope)
}

// Remove closes the toolset of a scope, if there is one, at the end of a conversation.
func (p *Pool) Remove(scope string) {
	scope = messages.Key{Scope: scope}.Normal().Scope
	p.remove(func(name string, _ *pooled) bool { return name == scope })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(scope)
}

// end closes the toolsets of an owner that has terminated.
func (p *Pool) end(owner string) {
	p.remove(func(_ string, one *pooled) bool { return one.owner == owner })
}

// Close closes all toolsets. Further calls do nothing.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.unsubscribe()
	p.remove(func(string, *pooled) bool { return true })
	p.owners.close()
}

// remove closes the toolsets that are meant.
func (p *Pool) remove(meant func(scope string, one *pooled) bool) {
	var ended []*pooled
	p.mu.Lock()
	for scope, one := range p.scopes {
		if meant(scope, one) {
			ended = append(ended, one)
			delete(p.scopes, scope)
		}
	}
	p.mu.Unlock()
	for _, one := range ended {
		if one.timer != nil {
			one.timer.Stop()
		}
		one.tools.Close()
	}
}
