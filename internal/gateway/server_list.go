package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/results"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// kind is a kind of things that a server lists.
type kind struct {
	items   string // the member of the result
	key     string // the member of a thing that names it: nobody could ask for a thing without it
	changed string // the notification
	command func(messages.Header) messages.Operation
}

// kinds are the kinds by the method that lists them.
var kinds = map[string]kind{
	"tools/list": {"tools", "name", "notifications/tools/list_changed", func(h messages.Header) messages.Operation {
		return &messages.ListTools{Header: h, Shared: true}
	}},
	"prompts/list": {"prompts", "name", "notifications/prompts/list_changed", func(h messages.Header) messages.Operation {
		return &messages.ListPrompts{Header: h, Shared: true}
	}},
	"resources/list": {"resources", "uri", "notifications/resources/list_changed", func(h messages.Header) messages.Operation {
		return &messages.ListResources{Header: h, Shared: true}
	}},
	"resources/templates/list": {"resourceTemplates", "uriTemplate", "notifications/resources/list_changed", func(h messages.Header) messages.Operation {
		return &messages.ListResourceTemplates{Header: h, Shared: true}
	}},
}

// item is one thing that a server lists.
type item struct {
	name   string          // or the URI, or the template of URIs
	public string          // the name for clients
	raw    json.RawMessage // with that name

	readsOnly bool // a tool that says that it changes nothing
}

// listed is what a server lists. It does not change.
type listed struct {
	items   []item
	rest    mcpserver.Object // the other members of the result
	digest  [32]byte         // of the items, in whatever order and form
	server  json.RawMessage  // what it says about itself, or nil
	remarks []string         // see [messages.Receipt.Remarks]
	until   time.Time        // see [messages.Listing.Until]
}

// isDue reports whether the list must be asked for again.
func (l *listed) isDue() bool { return l == nil || !l.until.IsZero() && !time.Now().Before(l.until) }

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
	shown *[32]byte     // the digest of what the client has got, or was told of: zero if that was nothing
}

// get returns the list. If it is not known, it is fetched, and the error says why there is none so far: at the end of the first
// attempt, or when the server has been waited for in vain. noWait does not wait.
func (l *list) get(ctx context.Context, w waiting) (*listed, error) {
	known, ended, err := l.look()
	if known != nil || err != nil {
		return known, err
	}
	if w == noWait {
		return nil, errSilent
	}
	if err := l.of.await(ctx, ended, w); err != nil {
		return nil, err
	}
	known, _, err = l.look()
	if known == nil && err == nil { // the client has left
		err = errGone
	}
	return known, err
}

// look returns the list, which is fetched if it is not known or its time is over. If it is not known, look returns the error of the
// last attempt, if one has failed, and what is closed at the end of the one that is under way.
func (l *list) look() (known *listed, ended chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known.isDue() && !l.busy {
		l.refresh()
	}
	if l.known == nil {
		err = l.err
	}
	return l.known, l.ended, err
}

// isFirst reports whether the list is being fetched for the first time.
func (l *list) isFirst() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy && l.known == nil && l.err == nil
}

// show returns the list that the client gets now, or nil. The client is told of what differs from it.
func (l *list) show() *listed {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = new([32]byte)
	if l.known != nil {
		*l.shown = l.known.digest
	}
	return l.known
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

// end wakes those who wait for the list. The caller holds the mutex.
func (l *list) end() {
	close(l.ended)
	l.ended = make(chan struct{})
}

// The pauses between attempts to fetch a list.
const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// fetch fetches the list until it is there.
func (l *list) fetch() {
	go l.of.startBeside()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		l.mu.Lock()
		if !l.stale || l.of.fetching.Err() != nil {
			l.busy = false
			l.end()
			l.mu.Unlock()
			return
		}
		l.stale = false
		l.mu.Unlock()
		got, err := l.of.fetch(l.of.fetching, l)
		changed, level := false, zerolog.WarnLevel
		l.mu.Lock()
		if l.err != nil || l.of.fetching.Err() != nil {
			level = zerolog.DebugLevel // it was said before, or the client has left
		}
		if l.err = err; err == nil {
			l.known, pause = got, firstPause
			if changed = l.shown != nil && *l.shown != got.digest; changed {
				*l.shown = got.digest
			}
		} else {
			l.stale = true
		}
		l.end()
		l.mu.Unlock()
		l.of.noteSilent(false) // after the end: see await
		l.of.place.noteDown(nil)
		if changed {
			l.of.c.Notify(l.changed, nil, nil)
		}
		if err == nil {
			continue
		}
		l.of.c.g.log.WithLevel(level).Str("scope", l.of.c.scope).Str("server", l.of.name).Str("op", l.method).Err(err).Msg("list was not fetched")
		select {
		case <-time.After(pause):
		case <-l.again:
		case <-l.of.fetching.Done():
		}
	}
}

// fetch gets a list from the catalogue. It waits for a server that is down as long as the client is there.
func (s *served) fetch(ctx context.Context, l *list) (*listed, error) {
	h := s.header(24 * time.Hour)
	reply, err := s.c.g.do.Do(ctx, l.command(h))
	var said *jsonrpc.Error
	if errors.As(err, &said) && said.Code == jsonrpc.CodeMethodNotFound { // it has no such things
		s.place.end()
		return s.newListed(l, mcpserver.Object{}, &messages.Listing{}, nil)
	}
	if err != nil {
		return nil, err
	}
	if reply.(messages.Result).GetReceipt().Generation != 0 { // it is not from the catalogue
		s.place.end()
	}
	var from *messages.Listing
	var result any
	switch r := reply.(type) {
	case *messages.ToolList:
		from, result = r.Listing, r.Result
	case *messages.PromptList:
		from, result = r.Listing, r.Result
	case *messages.ResourceList:
		from, result = r.Listing, r.Result
	case *messages.ResourceTemplateList:
		from, result = r.Listing, r.Result
	}
	receipt := reply.(messages.Result).GetReceipt()
	raw := receipt.Verbatim
	if raw == nil { // from the catalogue, for somebody who has not asked for it
		if raw, err = mcpserver.Encode(result); err != nil {
			return nil, err
		}
	}
	return s.newListed(l, mcpserver.ObjectOf(raw), cmp.Or(from, &messages.Listing{}), receipt.Remarks())
}

// newListed reads the result of a list: the tools that pass the filters, and tools and prompts with their names for clients. What is
// odd has become what the remarks say of it: some clients refuse a whole list, and so the things of all servers, for one member.
func (s *served) newListed(of *list, result mcpserver.Object, from *messages.Listing, remarks []string) (*listed, error) {
	l := &listed{server: from.Verbatim, rest: result.Without(of.items, "nextCursor"), remarks: remarks, until: from.Until}
	if l.server == nil && from.Server != nil {
		l.server, _ = mcpserver.Encode(from.Server)
	}
	things, ok := results.Elements(of.method, of.items, result[of.items])
	if !ok {
		return nil, fmt.Errorf("the list of %s that the server has sent cannot be read", of.items)
	}
	isMerged := s.c.g.cfg.Prefixed
	var sums []string
	for _, raw := range things {
		one := mcpserver.ObjectOf(raw)
		name := one.Text(of.key)
		if name == "" {
			l.remarks = append(l.remarks, fmt.Sprintf("one of the %s has no %s, and was left out", of.items, of.key))
			continue
		}
		if of.items == "tools" && !s.tools.Wants(name) {
			continue
		}
		it := item{name: name, public: name, raw: raw, readsOnly: string(mcpserver.ObjectOf(one["annotations"])["readOnlyHint"]) == "true"}
		if isMerged && of.key == "name" {
			it.public = toolset.SafeName(s.name, name)
			one.With("name", it.public)
		}
		if isMerged {
			l.remarks = append(l.remarks, conform(of.items, name, one)...)
			it.raw, _ = mcpserver.Encode(one)
		}
		l.items = append(l.items, it)
		sums = append(sums, string(canonical(it.raw)))
	}
	slices.Sort(sums)
	l.digest = sha256.Sum256([]byte(strings.Join(sums, "\n")))
	return l, nil
}

// conform changes what an SDK decodes, but for which the schema of the protocol has no place: null, and a tool's schema that is not one of an
// object. It returns remarks.
func conform(items, name string, one mcpserver.Object) (remarks []string) {
	maps.DeleteFunc(one, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	if items != "tools" {
		return nil
	}
	if its := mcpserver.ObjectOf(one["inputSchema"]); its.Text("type") != "object" {
		one.With("inputSchema", its.With("type", "object"))
		remarks = append(remarks, fmt.Sprintf("tools (%.100q).inputSchema is not that of an object, and was made one", name))
	}
	if its := one["outputSchema"]; its != nil && mcpserver.ObjectOf(its).Text("type") != "object" {
		delete(one, "outputSchema")
		remarks = append(remarks, fmt.Sprintf("tools (%.100q).outputSchema is not that of an object, and was left out", name))
	}
	return remarks
}

// canonical returns JSON in the one form of all texts that say the same.
func canonical(raw json.RawMessage) []byte {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // digits beyond those of a float64 count
	var value any
	if decoder.Decode(&value) != nil {
		return raw
	}
	data, err := mcpserver.Encode(value)
	if err != nil {
		return raw
	}
	return data
}
