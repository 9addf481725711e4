package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/mcpserver"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// kind is a kind of things that a server lists.
type kind struct {
	items   string // the member of the result
	changed string // the notification
	command func(messages.Header) messages.Operation
}

// kinds are the kinds by the method that lists them.
var kinds = map[string]kind{
	"tools/list": {"tools", "notifications/tools/list_changed", func(h messages.Header) messages.Operation {
		return &messages.ListTools{Header: h, Shared: true}
	}},
	"prompts/list": {"prompts", "notifications/prompts/list_changed", func(h messages.Header) messages.Operation {
		return &messages.ListPrompts{Header: h, Shared: true}
	}},
	"resources/list": {"resources", "notifications/resources/list_changed", func(h messages.Header) messages.Operation {
		return &messages.ListResources{Header: h, Shared: true}
	}},
	"resources/templates/list": {"resourceTemplates", "notifications/resources/list_changed", func(h messages.Header) messages.Operation {
		return &messages.ListResourceTemplates{Header: h, Shared: true}
	}},
}

// item is one thing that a server lists.
type item struct {
	name   string          // or the URI, or the template of URIs
	public string          // the name for clients
	raw    json.RawMessage // with that name
}

// listed is what a server lists. It does not change.
type listed struct {
	items  []item
	rest   mcpserver.Object // the other members of the result
	digest [32]byte
	server *mcp.InitializeResult // or nil
}

// list is one list of a server, as one client sees it. While it is not known, it is fetched again and again, as long as
// the client is there.
type list struct {
	of     *served
	method string
	kind

	mu    sync.Mutex
	known *listed       // or nil
	err   error         // of the last attempt, or nil
	stale bool          // it must be fetched
	busy  bool          // it is being fetched
	ended chan struct{} // closed at the end of an attempt
	again chan struct{} // has an element if the next attempt must not pause
	shown *[32]byte     // the digest of what the client has got: zero if that was nothing
}

// get returns the list, and waits for it if it is not known or stale. The error says why there is none so far.
func (l *list) get(ctx context.Context, wait time.Duration) (*listed, error) {
	if l.of.isDown() { // it was waited for before
		wait = 0
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.refresh()
	}
	for first := true; l.busy && (first || l.known == nil && l.err == nil); first = false {
		ended := l.ended
		l.mu.Unlock()
		select {
		case <-ended:
		case <-timer.C:
			wait = 0
		case <-ctx.Done():
			wait = 0
		}
		l.mu.Lock()
		if wait == 0 {
			break
		}
	}
	switch {
	case l.known != nil:
		return l.known, nil
	case l.err != nil:
		return nil, l.err
	}
	return nil, errors.Join(l.of.away(), ctx.Err())
}

// show notes what the client gets.
func (l *list) show(got *listed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = new([32]byte)
	if got != nil {
		*l.shown = got.digest
	}
}

// review fetches the list again, if it was fetched before: it may have changed.
func (l *list) review() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known != nil || l.err != nil || l.busy {
		l.refresh()
		select {
		case l.again <- struct{}{}:
		default:
		}
	}
}

// refresh has the list fetched. The caller holds the mutex.
func (l *list) refresh() {
	l.stale = true
	if !l.busy {
		l.busy = true
		go l.fetch()
	}
}

// The pauses between attempts to fetch a list.
const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// fetch fetches the list until it is there.
func (l *list) fetch() {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		l.mu.Lock()
		if !l.stale || l.of.c.ctx.Err() != nil {
			l.busy = false
			l.mu.Unlock()
			return
		}
		l.stale = false
		l.mu.Unlock()
		got, err := l.of.fetch(l.of.c.ctx, l)
		l.of.setDown(false)
		changed := false
		l.mu.Lock()
		if l.err = err; err == nil {
			l.known, pause = got, firstPause
			changed = l.shown != nil && *l.shown != got.digest
		} else {
			l.stale = true
		}
		close(l.ended)
		l.ended = make(chan struct{})
		l.mu.Unlock()
		if changed {
			l.of.c.Notify(l.changed, nil, nil)
		}
		if err == nil {
			continue
		}
		l.of.c.g.log.Debug().Str("scope", l.of.c.scope).Str("server", l.of.name).Str("op", l.method).Err(err).Msg("list was not fetched")
		select {
		case <-time.After(pause):
		case <-l.again:
		case <-l.of.c.ctx.Done():
		}
	}
}

// fetch gets a list from the catalogue. It waits for a server that is down as long as the client is there.
func (s *served) fetch(ctx context.Context, l *list) (*listed, error) {
	h := s.header(24 * time.Hour)
	reply, err := s.c.g.do.Do(ctx, l.command(h))
	var said *jsonrpc.Error
	if errors.As(err, &said) && said.Code == jsonrpc.CodeMethodNotFound { // it has no such things
		return s.newListed(l, mcpserver.Object{}, nil), nil
	}
	if err != nil {
		return nil, err
	}
	var listing *messages.Listing
	var result any
	switch r := reply.(type) {
	case *messages.ToolList:
		listing, result = r.Listing, r.Result
	case *messages.PromptList:
		listing, result = r.Listing, r.Result
	case *messages.ResourceList:
		listing, result = r.Listing, r.Result
	case *messages.ResourceTemplateList:
		listing, result = r.Listing, r.Result
	}
	raw := reply.(messages.Result).GetReceipt().Verbatim
	if raw == nil { // from the catalogue, for somebody who has not asked for it
		if raw, err = mcpserver.Encode(result); err != nil {
			return nil, err
		}
	}
	var server *mcp.InitializeResult
	if listing != nil {
		server = listing.Server
	}
	return s.newListed(l, mcpserver.ObjectOf(raw), server), nil
}

// newListed reads the result of a list: the tools that pass the filters, and tools and prompts with their names for clients.
func (s *served) newListed(of *list, result mcpserver.Object, server *mcp.InitializeResult) *listed {
	l := &listed{server: server, rest: result.Without(of.items, "nextCursor")}
	var all []json.RawMessage
	json.Unmarshal(result[of.items], &all) //nolint:errcheck // then there are none
	sum := sha256.New()
	for _, raw := range all {
		one := mcpserver.ObjectOf(raw)
		name := cmp.Or(one.Text("uri"), one.Text("uriTemplate"), one.Text("name"))
		if of.items == "tools" && !s.tools.Wants(name) {
			continue
		}
		it := item{name, name, raw}
		if s.c.g.cfg.Prefixed && (of.items == "tools" || of.items == "prompts") {
			it.public = toolset.SafeName(s.name, name)
			if named, err := mcpserver.Encode(it.public); err == nil {
				if renamed, err := mcpserver.Encode(one.With("name", named)); err == nil {
					it.raw = renamed
				}
			}
		}
		l.items = append(l.items, it)
		sum.Write(it.raw)
	}
	l.digest = [32]byte(sum.Sum(nil))
	return l
}
