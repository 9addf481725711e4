package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/gateway/internal/paramheader"
	"github.com/mcpactor/mcpactor/gateway/internal/pinned"
	"github.com/mcpactor/mcpactor/gateway/internal/view"
	"github.com/mcpactor/mcpactor/internal/results"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// kind is a kind of items that a server lists.
type kind struct {
	items   string // the member of the result
	key     string // the member that names an item: nobody can ask for an item without it
	changed string // the notification
	command func(h messages.Header, shared bool) messages.Operation
}

// kinds has the kinds, by the method that lists them.
var kinds = map[string]kind{
	"tools/list": {"tools", "name", "notifications/tools/list_changed", func(h messages.Header, shared bool) messages.Operation {
		return &messages.ListTools{Header: h, Shared: shared}
	}},
	"prompts/list": {"prompts", "name", "notifications/prompts/list_changed", func(h messages.Header, shared bool) messages.Operation {
		return &messages.ListPrompts{Header: h, Shared: shared}
	}},
	"resources/list": {"resources", "uri", "notifications/resources/list_changed", func(h messages.Header, shared bool) messages.Operation {
		return &messages.ListResources{Header: h, Shared: shared}
	}},
	"resources/templates/list": {"resourceTemplates", "uriTemplate", "notifications/resources/list_changed", func(h messages.Header, shared bool) messages.Operation {
		return &messages.ListResourceTemplates{Header: h, Shared: shared}
	}},
}

// item is a tool, a prompt, a resource or a template of resources.
type item struct {
	name   string          // for the server: a name, a URI, or the template of URIs
	public string          // for clients
	raw    json.RawMessage // as JSON, with the public name
	id     string          // identifies it among those of the client: the public name, unless its server lists two with that
	digest string          // of raw, in whatever form

	readsOnly bool // the server says that the tool changes nothing
}

// checkHeaders returns the error for a call over HTTP whose headers do not repeat its arguments as the input schema of the tool says,
// see [paramheader.Check]. It waits for a list that is not known, also without headers. Without a list, nothing is checked.
func (s *served) checkHeaders(ctx context.Context, tool string, arguments json.RawMessage, headers http.Header) error {
	l := s.lists["tools/list"]
	l.get(ctx, shortWait) //nolint:errcheck // the call says why the server is down
	if headers == nil {
		return nil
	}
	return paramheader.Check(l.inputSchema(tool), arguments, headers)
}

// content is what a server lists. It does not change.
type content struct {
	source
	items   []item
	hidden  []string         // the names of tools that do not pass the filters, or that the pins refuse
	pinned  *pinned.List     // nil without [Config.Pins]
	rest    mcpserver.Object // the other members of the result
	digest  [32]byte         // of the items, in whatever order and form
	remarks []string         // those of the source, and what has become of odd items
	at      time.Time        // when it was fetched
	// generation is that of the session of the client that has listed it, or 0.
	generation uint64
	until      time.Time // when to ask again, or zero, see [messages.Listing.Until]
}

// source is what a content is read from.
type source struct {
	result json.RawMessage
	server json.RawMessage // what it says about itself, or nil
	odd    []string        // see [messages.Receipt.Remarks]
}

// isDue reports whether the list must be fetched: it is not known, or its time is over.
func (c *content) isDue() bool { return c == nil || !c.until.IsZero() && !time.Now().Before(c.until) }

// list is one list of a server, as one client sees it. A fetch that fails is repeated until it succeeds, or the client
// leaves. The client gets what is known, and is told when that has changed.
type list struct {
	of     *served
	method string
	kind

	mu        sync.Mutex
	known     *content      // or nil
	err       error         // of the last attempt, or nil
	stale     bool          // it must be fetched
	busy      bool          // it is being fetched
	ended     chan struct{} // closed at the end of an attempt
	again     chan struct{} // has an element if the next attempt begins without a pause
	own       bool          // the next attempt is to ask the session of the client, and not the catalogue
	confirmed uint64        // the generation of the session that was asked last
	overdue   atomic.Bool   // a call has waited for the attempt in vain
	shown     *[32]byte     // the digest of the list that the client has got or was told of, zero if there was none; nil before it has asked
}

// get returns the list. If it is not known, get waits for the end of an attempt to fetch it, as long as w says. The error
// says why there is no list.
func (l *list) get(ctx context.Context, w waiting) (*content, error) {
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

// look returns the list, and begins to fetch it if that is due. If the list is not known, err is the error of the last
// attempt, if there was one. ended is closed at the end of the attempt that is under way.
func (l *list) look() (known *content, ended chan struct{}, err error) {
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

// show returns the list that the client gets now, or nil. The client is told when it has changed.
func (l *list) show() *content {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = new([32]byte)
	if l.known != nil {
		*l.shown = l.known.digest
	}
	return l.known
}

// item returns the item with a name, or an empty one if it is not known.
func (l *list) item(name string) item {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known != nil {
		if i := slices.IndexFunc(l.known.items, func(it item) bool { return it.name == name }); i >= 0 {
			return l.known.items[i]
		}
	}
	return item{}
}

// inputSchema returns the input schema of a tool, or nil if it is not known.
func (l *list) inputSchema(tool string) json.RawMessage {
	return mcpserver.ObjectOf(l.item(tool).raw)["inputSchema"]
}

// last returns the list, or nil if it is not known.
func (l *list) last() *content {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

// confirm waits until the session of the client itself has listed, such as its tools: a list of the catalogue may be one of before, when a tool
// changed nothing, or had another definition. It waits as long as a request waits for a list.
func (s *served) confirm(r *mcpserver.Request, method string) error {
	l := s.lists[method]
	if status := s.check(r.Context); status != nil && status.State == messages.StateReady && l.isOf(status.Generation) {
		return nil // in the order of requests
	}
	r.Pass()
	info, err := s.c.g.do.Do(r.Context, &messages.Open{Header: s.header(patience)})
	if err != nil {
		return err
	}
	generation := info.(*messages.SessionInfo).Generation
	for range 2 { // an attempt that is under way asks the catalogue
		if l.isOf(generation) {
			return nil
		}
		l.mu.Lock()
		l.own = true
		l.refresh()
		ended := l.ended
		l.mu.Unlock()
		if err := s.await(r.Context, ended, shortWait); err != nil {
			return err
		}
	}
	_, _, err = l.look()
	return err
}

// isOf reports whether the session of a generation, or a later one, has listed.
func (l *list) isOf(generation uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.confirmed >= generation
}

// settle waits for the end of an attempt to fetch the list, if one is under way.
func (l *list) settle(r *mcpserver.Request) {
	l.mu.Lock()
	busy, ended := l.busy, l.ended
	l.mu.Unlock()
	if !busy || l.overdue.Load() {
		return
	}
	r.Pass()
	if err := l.of.await(r.Context, ended, shortWait); err != nil { // the last list counts
		l.overdue.Store(true)
	}
}

// noItems is the digest of a list without items.
var noItems = sha256.Sum256(nil)

// digestShown returns the digest of the list that the client has got or was told of, or nil before it has asked.
func (l *list) digestShown() *[32]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown == nil {
		return nil
	}
	digest := *l.shown
	return &digest
}

// take makes the list take the place of one that the client has seen, and fetches it. The client is told if it is another one.
func (l *list) take(shown [32]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = &shown
	l.refresh()
}

// review fetches the list again, because it may have changed, unless nobody has asked for it yet.
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

// refresh begins to fetch the list, also if a fetch is under way, which may not see the last change. The caller holds the mutex.
func (l *list) refresh() {
	l.stale = true
	if !l.busy {
		l.busy = true
		go l.fetch()
	}
}

// end notes the end of an attempt, for which others wait. The caller holds the mutex.
func (l *list) end() {
	close(l.ended)
	l.overdue.Store(false)
	l.ended = make(chan struct{})
}

// The pauses between attempts to fetch a list.
const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// fetch fetches the list until it is not stale.
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
		own := l.own
		l.stale, l.own = false, false
		l.mu.Unlock()
		got, err := l.of.fetch(l.of.fetching, l, own)
		changed, isShown, level := false, false, zerolog.WarnLevel
		l.mu.Lock()
		if l.err != nil || l.of.fetching.Err() != nil {
			level = zerolog.DebugLevel // it was said before, or the client has left
		}
		if l.err = err; err == nil {
			l.known, pause = got, firstPause
			if got.pinned.HasRefused() && !own { // the session may have what is accepted by now
				l.stale, l.own = true, true
			}
			l.confirmed = max(l.confirmed, got.generation)
			if changed = l.shown != nil && *l.shown != got.digest; changed {
				*l.shown = got.digest
			}
			isShown = l.shown != nil
		} else {
			l.stale, l.own = true, own
		}
		l.end()
		l.mu.Unlock()
		l.of.noteSilent(false) // after the end: see await
		l.of.endpoint.noteDown(nil)
		if l.items == "tools" && l.of.c.view.Has() { // the view knows what the client was shown of all servers
			changed = isShown && l.of.c.view.News()
		}
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

// fetch asks the catalogue for a list. It waits for a server that is down until the client leaves.
func (s *served) fetch(ctx context.Context, l *list, own bool) (*content, error) {
	h := s.header(24 * time.Hour)
	reply, err := s.c.g.do.Do(ctx, l.command(h, !own))
	if said, is := errors.AsType[*jsonrpc.Error](err); is && said.Code == jsonrpc.CodeMethodNotFound { // it has no such things
		s.endpoint.end()
		return s.newContent(l, source{}, &messages.Listing{})
	}
	if err != nil {
		return nil, err
	}
	if reply.(messages.Result).GetReceipt().Generation != 0 { // it is not from the catalogue
		s.endpoint.end()
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
	if s.c.set != nil && l.method == "tools/list" { // the toolset has the tools: only what the server says about itself is wanted
		raw = nil
	}
	from = cmp.Or(from, &messages.Listing{})
	server := from.Verbatim
	if server == nil && from.Server != nil {
		server, _ = mcpserver.Encode(from.Server)
	}
	got, err := s.newContent(l, source{raw, server, receipt.Remarks()}, from)
	if err == nil && own {
		got.at, got.generation = time.Now(), receipt.Generation
	}
	return got, err
}

// newContent reads a list, unless it is the one that is known. It has the tools that pass the filters. Tools and prompts have their names for
// clients. In front of several servers, odd members are changed or left out, and remarks say so: some clients refuse a whole
// list, and so the items of all servers, because of one member.
func (s *served) newContent(of *list, from source, listed *messages.Listing) (*content, error) {
	pins := s.c.g.cfg.Pins
	if of.known != nil && pins == nil && reflect.DeepEqual(of.known.source, from) { // only fetch changes it
		same := *of.known
		same.at, same.until, same.generation = listed.At, listed.Until, 0
		return &same, nil
	}
	result := mcpserver.ObjectOf(from.result)
	l := &content{source: from, rest: result.Without(of.items, "nextCursor"), remarks: slices.Clone(from.odd), at: listed.At, until: listed.Until}
	things, ok := results.Elements(of.method, of.items, result[of.items])
	if !ok {
		return nil, fmt.Errorf("the list of %s that the server has sent cannot be read", of.items)
	}
	l.pinned = pinned.NewList(pins, s.name, of.method)
	var why error
	if l.server, why = pinned.Instructions(pins, s.name, l.server); why != nil && of.items == "tools" { // once is enough
		l.remarks = append(l.remarks, oneLine(why))
	}
	isMerged := s.c.offer.prefixed
	var sums []string
	times := map[string]int{}
	for _, raw := range things {
		one := mcpserver.ObjectOf(raw)
		name := one.Text(of.key)
		if name == "" {
			l.remarks = append(l.remarks, fmt.Sprintf("one of the %s has no %s, and was left out", of.items, of.key))
			continue
		}
		if of.items == "tools" && !s.wants(name, view.ReadsOnly(one)) {
			l.hidden = append(l.hidden, name)
			continue
		}
		if why := l.pinned.Add(name, raw); why != nil {
			l.remarks = append(l.remarks, oneLine(why))
			l.hidden = append(l.hidden, name)
			continue
		}
		public := name
		if isMerged && of.key == "name" {
			public = toolset.SafeName(s.name, name)
			one.With("name", public)
		}
		if isMerged {
			l.remarks = append(l.remarks, conform(of.items, name, one)...)
			raw, _ = mcpserver.Encode(one)
		}
		nth := 1
		if !isMerged { // the server as it is, also with two items of a name
			times[name]++
			nth = times[name]
		}
		it := item{name: name, public: public, id: view.IDOf(public, nth), raw: raw, digest: mcpserver.Digest(raw), readsOnly: view.ReadsOnly(one)}
		l.items = append(l.items, it)
		sums = append(sums, it.digest)
	}
	slices.Sort(sums)
	l.digest = sha256.Sum256([]byte(strings.Join(sums, "")))
	return l, nil
}

// conform removes from an item what SDKs decode, but the schema of the protocol does not allow: null, and a schema of a tool
// that is not that of an object. It returns remarks.
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
