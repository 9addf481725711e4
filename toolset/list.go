package toolset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/singleflight"

	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/messages"
)

// list is the last known list of one server's tools. The toolset's mutex guards all
// fields but the first four, which never change.
type list struct {
	key    messages.Key
	filter Filter // with the name and the scope of the key
	fetch  singleflight.Group
	// changes counts the events of all scopes that may have changed the list. The lists of a server share it.
	changes *atomic.Uint64

	made    source              // of the last list; only fetch uses it
	tools   []*Tool             // of the last list; read-only
	leftOut []*messages.Failure // of the last list; read-only
	refused []*messages.Failure // for the tools that the policy does not accept; read-only
	unknown bool                // the supervisor does not know the server
	known   []*Tool             // as tools, but kept while the supervisor does not know the server
	begun   bool                // known was listed
	down    bool                // the server is down: callers do not wait for the list, see [Toolset.probeLater]
	away    error               // why there is no list, if the server is down
	probe   *time.Timer         // begins the next fetch from a server that is down, or nil

	news   uint64    // the number of other events that may have changed the list
	seen   uint64    // the number of events that the list reflects
	opened session   // the last session that was opened and had not been listed before
	on     session   // the session that was listed, if it is the key's own
	own    bool      // the next fetch asks the session itself
	proved session   // the last session of the key that was listed
	until  time.Time // when the list must be asked for again, or zero
}

// session is one MCP session of a key.
type session struct {
	supervisor string
	generation uint64
}

// wanted returns the number of events that may have changed the list.
func (l *list) wanted() uint64 { return l.news + l.changes.Load() }

// stale reports whether the catalogue must be asked for the list again. It knows whether the server must list again.
// The list of a server that is down is stale: who asks for it has the server probed. So is one with tools that somebody may have accepted by now.
func (l *list) stale() bool {
	return l.down || l.own || len(l.refused) > 0 || l.seen != l.wanted() || !l.until.IsZero() && !time.Now().Before(l.until)
}

// join returns a channel that gets the end of a fetch of the list, or nil if the list is not stale.
// It begins a fetch unless one is under way. That one may have begun before the list became
// stale, and has the attributes and the trace of the caller that began it.
func (t *Toolset) join(ctx context.Context, l *list) <-chan singleflight.Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !l.stale() {
		return nil
	}
	ctx = messages.WithTrace(caller.Shared(t.ctx, ctx), traceOf(ctx))
	return l.fetch.DoChan("", func() (any, error) { return nil, t.fetch(ctx, l) })
}

// fetch fetches a list. No caller's context ends it.
func (t *Toolset) fetch(ctx context.Context, l *list) error {
	t.mu.Lock()
	seen, opened := l.wanted(), l.opened // the reply reflects all events so far
	isKept := l.on.generation == 0       // a list that was kept from before may have what is no longer refused
	op := &messages.ListTools{Header: messages.To(l.key.Server, l.key.Scope), Shared: !l.own && (len(l.refused) == 0 || !isKept), Fresh: l.down}
	l.own = false
	t.mu.Unlock()
	if op.Fresh {
		op.Deadline = time.Now().Add(probeTime)
	}
	reply, err := t.client.Do(ctx, op)
	var listed *messages.ToolList
	from, tools, leftOut, refused, changed := &messages.Listing{}, l.tools, l.leftOut, l.refused, false
	if err == nil {
		listed = reply.(*messages.ToolList)
		from = cmp.Or(listed.Listing, from) // it has none if an interceptor has made the reply
		made := source{listed.Result.Tools, listed.Remarks(), from.Stale}
		switch changed = !reflect.DeepEqual(made, l.made); {
		case changed:
			l.made = made
			tools, leftOut = made.read(l.filter, from.At)
		case t.ignores():
			tools, changed = confirmed(tools, from.At), true
		}
		refused = t.cfg.Policy.refused(tools)
		changed = changed || !slices.EqualFunc(refused, l.refused, func(a, b *messages.Failure) bool { return a.Target == b.Target && a.Detail == b.Detail })
	}
	defer func() {
		if changed {
			t.feed.tell(t)
		}
	}()
	t.mu.Lock()
	defer t.mu.Unlock()
	over := op.Fresh && errors.Is(err, messages.CodeDeadline) // as before, the server is down
	switch l.down = over || errors.Is(err, messages.CodeUnavailable) || from.Down && from.Stale; {
	case !l.down || err == nil:
		l.away = nil
	case !op.Fresh: // or else there was a stale list before, or away says why there was none
		l.away = err
	}
	if l.down {
		t.probeLater(l, err)
	}
	switch {
	case err == nil:
		if changed && l.begun {
			for _, event := range t.changes(l, listed.Receipt, l.known, tools) {
				t.changed.Put(event)
			}
		}
		l.unknown = false
		l.tools, l.leftOut, l.refused, l.known, l.begun = tools, leftOut, refused, tools, true
		l.on, l.seen, l.until = session{listed.Supervisor, listed.Generation}, seen, from.Until
		if l.opened != opened && l.opened == l.on { // it was opened for the list
			l.seen++
		}
		if listed.Generation != 0 {
			l.proved = l.on
		}
		if changed {
			t.all = nil
		}
	case errors.Is(err, messages.CodeUnknownServer):
		l.tools, l.leftOut, l.refused, l.made, l.unknown, t.all = nil, nil, nil, source{}, true, nil
	}
	return err
}

// ignores reports whether the model was shown newer definitions than those of some list.
func (t *Toolset) ignores() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conversation.ignores
}

// confirmed returns tools that their server has listed again at a time.
func confirmed(tools []*Tool, at time.Time) []*Tool {
	again := make([]*Tool, len(tools))
	for i, tool := range tools {
		same := *tool
		same.listed = at
		again[i] = &same
	}
	return again
}

// source is what a list is made from. Most fetches return the same: then the tools stay, because it takes long to read them.
type source struct {
	tools   []*mcp.Tool
	remarks []string
	stale   bool
}

// read returns the tools of a server that pass its filter, and what is left out of the list, which was fetched at a time.
func (s source) read(filter Filter, at time.Time) (tools []*Tool, leftOut []*messages.Failure) {
	tools, leftOut = newTools(filter, s.tools)
	for _, remark := range s.remarks {
		leftOut = append(leftOut, filter.leftOut("", remark, nil))
	}
	for _, tool := range tools {
		tool.Stale, tool.listed = s.stale, at
	}
	return tools, leftOut
}

const (
	// probeTime bounds one fetch from a server that is down. The next one follows it.
	probeTime = time.Hour
	// probePause is the least time between two of them.
	probePause = time.Second
)

// probeLater fetches a list again after a pause, because its server is down: the fetch lasts until that is back. cause is why
// the last fetch has failed, or nil. The caller holds the mutex.
func (t *Toolset) probeLater(l *list, cause error) {
	pause := probePause
	if f, is := errors.AsType[*messages.Failure](cause); is {
		pause = max(pause, f.RetryAfter)
	}
	if l.probe != nil {
		l.probe.Stop()
	}
	l.probe = time.AfterFunc(pause, func() {
		if t.ctx.Err() == nil {
			t.join(t.ctx, l)
		}
	})
}

// refresh waits until a list reflects all events before the call. The caller waits since began.
func (t *Toolset) refresh(ctx context.Context, l *list, fetch <-chan singleflight.Result, began time.Time) error {
	if err := t.wait(ctx, l, fetch, began); err != nil {
		return err
	}
	// That fetch may have begun before the list became stale. The next one has not.
	return t.wait(ctx, l, t.join(ctx, l), began)
}

// wait waits for the end of a fetch, or of ctx. It returns at once if fetch is nil, or if the server is down.
func (t *Toolset) wait(ctx context.Context, l *list, fetch <-chan singleflight.Result, began time.Time) error {
	if fetch == nil {
		return nil
	}
	t.mu.Lock()
	down, away := l.down, l.away
	t.mu.Unlock()
	if down {
		return away
	}
	select {
	case result := <-fetch:
		return result.Err
	case <-ctx.Done():
		return t.late(ctx, l, time.Since(began))
	}
}

// prove waits until the session on which a tool is called has listed its tools: another session may have been shown other definitions.
func (t *Toolset) prove(ctx context.Context, l *list) error {
	reply, err := t.client.Do(ctx, &messages.Open{Header: messages.To(l.key.Server, l.key.Scope)})
	if err != nil {
		return err
	}
	open := reply.(messages.Result).GetReceipt()
	t.mu.Lock()
	isKnown := l.proved == session{open.Supervisor, open.Generation}
	l.own = l.own || !isKnown
	t.mu.Unlock()
	if isKnown {
		return nil
	}
	return t.refresh(ctx, l, t.join(ctx, l), time.Now())
}

// refuses reports whether the policy does not accept a tool of the list.
func (l *list) refuses(tool *Tool) bool {
	return slices.ContainsFunc(l.refused, func(f *messages.Failure) bool { return f.Target == tool.Original })
}

// offered returns the tools that the policy accepts.
func (l *list) offered() []*Tool {
	if l.refused == nil {
		return l.tools
	}
	return slices.DeleteFunc(slices.Clone(l.tools), l.refuses)
}

// failure returns the error of a fetch as the failure of this list: an interceptor may have named
// another key.
func (l *list) failure(err error) *messages.Failure {
	f := messages.Failure{Op: "tools/list", Code: messages.CodeInternal, Detail: err.Error(), Cause: err}
	if known, is := errors.AsType[*messages.Failure](err); is && known != nil {
		f = *known
	}
	f.Key = l.key
	return &f
}

// checkTimeout bounds how long the question takes whether a server is down.
const checkTimeout = 500 * time.Millisecond

// late returns why a list did not come before ctx ended: its server is down, does not speak, or is slow.
func (t *Toolset) late(ctx context.Context, l *list, waited time.Duration) *messages.Failure {
	waited = waited.Round(100 * time.Millisecond)
	f := &messages.Failure{
		Key: l.key, Op: "tools/list", Code: messages.CodeDeadline, Cause: context.Cause(ctx),
		Detail: fmt.Sprintf("the list has not come within %v, and is still being fetched", waited),
	}
	asking, cancel := context.WithTimeout(t.ctx, checkTimeout)
	defer cancel()
	reply, err := t.client.Do(asking, &messages.Check{Key: l.key})
	if err != nil {
		return f
	}
	switch status := reply.(*messages.Status); {
	case status.Health == messages.HealthDown:
		f.Code, f.Detail = messages.CodeUnavailable, strings.TrimPrefix(status.Cause, string(messages.CodeUnavailable)+": ")
		f.RetryAfter = max(0, time.Until(status.RetryAt))
		t.mu.Lock()
		l.down, l.away = true, f
		t.mu.Unlock()
	case status.State == messages.StateConnecting:
		f.Detail = fmt.Sprintf("the server has not answered initialize within %v", waited)
	}
	return f
}

// onOpened asks for the list of a session as soon as it has opened, beside the call for which it was opened.
func (t *Toolset) onOpened(l *list, stamp messages.Stamp, event messages.Event) {
	_, restarted := event.(*messages.SessionRestarted)
	t.mu.Lock()
	opened := session{stamp.Supervisor, stamp.Generation}
	known, begun := l.on == opened && !restarted, l.begun
	if !known {
		l.opened = opened
		l.news++
	}
	t.mu.Unlock()
	if begun && !known {
		fetch := t.join(t.ctx, l) // perhaps one that is about to end, and reflects nothing of the event
		go func() { _ = t.refresh(t.ctx, l, fetch, time.Now()) }()
	}
}

// listOf returns the list of a key, or nil.
func (t *Toolset) listOf(key messages.Key) *list {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lists {
		if l.key == key.Normal() {
			return l
		}
	}
	return nil
}
