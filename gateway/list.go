package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/gateway/internal/pinned"
	"github.com/mcpactor/mcpactor/gateway/internal/publicid"
	"github.com/mcpactor/mcpactor/gateway/internal/view"
	"github.com/mcpactor/mcpactor/toolset"
)

// list answers a request for a list, with the items of all servers. A log message names each server that could not be listed,
// and the client is told when its list is there. Another one names, once, each server that is left out. If no server could be
// listed, the request fails with the causes.
func (c *client) list(r *mcpserver.Request, params mcpserver.Object) (any, error) {
	if c.set != nil && r.Method == "tools/list" {
		return c.set.list(r)
	}
	if params.Text("cursor") != "" {
		return nil, mcpserver.Invalid("the list has one page")
	}
	r.Pass()
	kind := kinds[r.Method]
	servers, contents, errs := c.shown(r.Context, r.Method)
	if r.Context.Err() != nil {
		return nil, errGone
	}
	result, all, failed := mcpserver.Object{}, []json.RawMessage{}, []error{}
	seen := map[string]bool{} // a name twice would confuse the client: calls go to the first
	isOfTools := r.Method == "tools/list"
	for i, s := range servers {
		got := contents[i]
		if got == nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.name, errs[i]))
			continue
		}
		for _, remark := range got.remarks {
			c.log(r, "warning", s.name+": "+remark)
		}
		for _, it := range got.items {
			if !isOfTools && !seen[it.id] {
				seen[it.id] = true
				all = append(all, it.raw)
			}
		}
		if !c.offer.prefixed {
			maps.Copy(result, got.rest)
		}
	}
	if isOfTools {
		all = c.view.Show()
	}
	if len(failed) > 0 && len(failed) == len(servers) && len(all) == 0 {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: oneLine(errors.Join(failed...))}
	}
	for _, err := range failed {
		c.log(r, "error", oneLine(err))
	}
	if offered := c.g.offers.Load(); !c.offer.isHere() && c.toldOf.Swap(offered) != offered {
		for _, text := range offered.leftOut {
			c.log(r, "error", oneLine(errors.New(text)))
		}
	}
	return result.With(kind.items, all), nil
}

// maxTaskPages bounds the pages of the tasks of one server.
const maxTaskPages = 100

// listTasks answers a request for the list of tasks, with those of all servers that have said that they list them. A log message names
// each server that could not be asked. If none could be, the request fails with the causes.
func (c *client) listTasks(r *mcpserver.Request) (any, error) {
	if r.Members().Text("cursor") != "" {
		return nil, mcpserver.Invalid("the list has one page")
	}
	r.Pass()
	var servers []*served
	all := c.servers()
	listsOf(r.Context, all, "tools/list", shortWait) // what servers have said of themselves comes with it
	for _, s := range all {
		said := s.introducedTasks()
		isUnknown := len(said) == 0 && !s.isShared()
		if isUnknown && !c.offer.prefixed || mcpserver.ObjectOf(tasksOf(said, false))["list"] != nil {
			servers = append(servers, s)
		}
	}
	if len(servers) == 0 {
		return nil, noMethod(r.Method)
	}
	got, errs := make([]mcpserver.Object, len(servers)), make([]error, len(servers))
	var asked sync.WaitGroup
	for i, s := range servers {
		asked.Go(func() { got[i], errs[i] = s.listTasks(r) })
	}
	asked.Wait()
	result, listed, failed := mcpserver.Object{}, []json.RawMessage{}, []error{}
	for i, s := range servers {
		if errs[i] != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.name, errs[i]))
		}
		tasks := []json.RawMessage{}
		json.Unmarshal(got[i]["tasks"], &tasks) //nolint:errcheck // there are none then
		listed = append(listed, tasks...)
		if !c.offer.prefixed {
			maps.Copy(result, got[i].Without("tasks"))
		}
	}
	switch {
	case len(failed) == len(servers) && len(servers) == 1:
		return nil, errs[0]
	case len(failed) == len(servers):
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: oneLine(errors.Join(failed...))}
	}
	for _, err := range failed {
		c.log(r, "error", oneLine(err))
	}
	return result.With("tasks", listed), nil
}

// listTasks returns the tasks of a server, with public ids: all pages as one.
func (s *served) listTasks(r *mcpserver.Request) (mcpserver.Object, error) {
	var list mcpserver.Object
	all, params := []json.RawMessage{}, r.Params
	for page := range maxTaskPages {
		result, err := s.requestTasks(r, params)
		if err != nil {
			return nil, err
		}
		its, tasks := mcpserver.ObjectOf(publicid.List.Public(s.c.g.key, s.name, result)), []json.RawMessage{}
		json.Unmarshal(its["tasks"], &tasks) //nolint:errcheck // there are none then
		all = append(all, tasks...)
		if page == 0 {
			list = its
		}
		if its.Text("nextCursor") == "" {
			break
		}
		if page == maxTaskPages-1 {
			s.c.log(r, "warning", fmt.Sprintf("%s: only the first %d pages of its tasks are listed", s.name, maxTaskPages))
		}
		params, _ = mcpserver.Encode(mcpserver.ObjectOf(r.Params).With("cursor", its["nextCursor"]))
	}
	delete(list, "nextCursor")
	return list.With("tasks", all), nil
}

// shown returns a list of each server that the client has, as it gets it now, or why there is none. The client is told when they have
// changed.
func (c *client) shown(ctx context.Context, method string) (servers []*served, all []*content, errs []error) {
	for {
		servers = c.servers()
		_, errs = listsOf(ctx, servers, method, shortWait)
		c.following.Lock()
		if slices.Equal(servers, c.servers()) || ctx.Err() != nil { // or else they have changed in the meantime
			break
		}
		c.following.Unlock()
	}
	defer c.following.Unlock()
	for _, s := range servers {
		all = append(all, s.lists[method].show())
	}
	return servers, all, errs
}

// log sends a log message to the client, beside the answer to a request.
func (c *client) log(r *mcpserver.Request, level mcp.LoggingLevel, text string) {
	c.Notify("notifications/message", &mcp.LoggingMessageParams{Level: level, Logger: "mcpactor", Data: text}, r)
}

// oneLine returns the text of an error on one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// listsOf returns a list of each server, or why there is none. It waits for lists that are not known, as long as w says.
func listsOf(ctx context.Context, servers []*served, method string, w waiting) ([]*content, []error) {
	got, errs := make([]*content, len(servers)), make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { got[i], errs[i] = s.lists[method].get(ctx, w) })
	}
	all.Wait()
	return got, errs
}

// tools returns the tools of all servers, as far as these are known.
func (c *client) tools() (all []view.Tool) {
	for _, s := range c.servers() {
		known := s.lists["tools/list"].last()
		if known == nil {
			continue
		}
		for _, it := range known.items {
			all = append(all, it.tool(s, known.at))
		}
	}
	return all
}

// tool returns a tool that a server has listed at a time.
func (it item) tool(s *served, at time.Time) view.Tool {
	return view.Tool{Server: s.name, Name: it.name, ID: it.id, Raw: it.raw, Digest: it.digest, ReadsOnly: it.readsOnly, At: at}
}

// keeps reports whether a tool that the server does not have now stays shown: the filters and the pins let it pass, and it is no second one of
// its name.
func (s *served) keeps(t view.Tool) bool {
	known := s.lists["tools/list"].last()
	isHidden := known != nil && slices.Contains(known.hidden, t.Name)
	return s.wants(t.Name, t.ReadsOnly) && !isHidden && t.IsFirst() && s.accepts(t)
}

// accepts reports whether the pins accept the definition of a tool that was shown.
func (s *served) accepts(t view.Tool) bool {
	pins := s.c.g.cfg.Pins
	if pins == nil {
		return true
	}
	raw, err := mcpserver.Encode(mcpserver.ObjectOf(t.Raw).With("name", t.Name))
	return err == nil && pinned.NewList(pins, s.name, "tools/list").Add(t.Name, raw) == nil
}

// tool returns the tool with a name that the server has now, or an empty one.
func (s *served) tool(name string) view.Tool {
	l := s.lists["tools/list"]
	if known := l.last(); known != nil {
		return l.item(name).tool(s, known.at)
	}
	return view.Tool{}
}

// serverOf returns the server of a tool or a prompt with a public name, or nil, and the name for the server. If there is none, err
// says which servers could not be listed.
func (c *client) serverOf(r *mcpserver.Request, method, public string) (s *served, name string, err error) {
	if !c.offer.prefixed {
		return c.servers()[0], public, nil
	}
	s, it, err := c.search(r, func(_ string, it item) bool { return it.public == public }, method)
	if s != nil {
		return s, it.name, nil
	}
	// The name of a tool says which server it belongs to, even if that was never listed.
	for _, s := range c.servers() {
		if rest, its := strings.CutPrefix(public, toolset.SafeName(s.name, "")); its && toolset.SafeName(s.name, rest) == public {
			if l, _ := s.lists[method].get(r.Context, noWait); l == nil {
				return s, rest, nil
			}
		}
	}
	for _, s := range c.servers() {
		if known := s.lists[method].last(); known != nil {
			if name = known.pinned.Find(func(name string) bool { return toolset.SafeName(s.name, name) == public }); name != "" {
				return s, name, nil // the caller says why it is refused
			}
		}
	}
	return nil, "", err
}

// holder returns the server that has a resource, or a template for it.
func (c *client) holder(r *mcpserver.Request, uri string) (*served, error) {
	if !c.offer.prefixed {
		return c.servers()[0], nil
	}
	const templates = "resources/templates/list"
	s, _, _ := c.search(r, func(method string, it item) bool { return it.name == uri || method == templates && fits(it.name, uri) }, "resources/list", templates)
	if s == nil {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	return s, nil
}

// search returns the first item in lists of all servers that is the wanted one, and its server, or nil. It waits for lists that
// are not known only if those that are known do not have the item. err says which servers could not be listed.
func (c *client) search(r *mcpserver.Request, wanted func(method string, it item) bool, methods ...string) (s *served, it item, err error) {
	servers := c.servers()
	for _, w := range []waiting{noWait, shortWait} {
		if w != noWait {
			r.Pass()
		}
		for _, method := range methods {
			got, errs := listsOf(r.Context, servers, method, w)
			err = errors.Join(errs...)
			for i, s := range servers {
				if got[i] == nil {
					continue
				}
				for _, it := range got[i].items {
					if wanted(method, it) {
						return s, it, nil
					}
				}
			}
		}
	}
	return nil, item{}, err
}

// fits reports whether a URI is one of a template.
func fits(template, uri string) bool {
	t, err := uritemplate.New(template)
	return err == nil && t.Match(uri) != nil
}
