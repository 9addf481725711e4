package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
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
	_, errs := c.lists(r.Context, r.Method, shortWait)
	if r.Context.Err() != nil {
		return nil, errGone
	}
	result, all, failed := mcpserver.Object{}, []json.RawMessage{}, []error{}
	seen := map[string]bool{} // a name twice would confuse the client: calls go to the first
	for i, s := range c.servers {
		got := s.lists[r.Method].show()
		if got == nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.name, errs[i]))
			continue
		}
		for _, remark := range got.remarks {
			c.log(r, "warning", s.name+": "+remark)
		}
		for _, it := range got.items {
			if !c.offer.prefixed || !seen[it.public] {
				seen[it.public] = true
				all = append(all, it.raw)
			}
		}
		if !c.offer.prefixed {
			maps.Copy(result, got.rest)
		}
	}
	if len(failed) == len(c.servers) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: oneLine(errors.Join(failed...))}
	}
	for _, err := range failed {
		c.log(r, "error", oneLine(err))
	}
	c.leftOut.Do(func() {
		for _, text := range c.offer.leftOut {
			c.log(r, "error", oneLine(errors.New(text)))
		}
	})
	return result.With(kind.items, all), nil
}

// log sends a log message to the client, beside the answer to a request.
func (c *client) log(r *mcpserver.Request, level mcp.LoggingLevel, text string) {
	c.Notify("notifications/message", &mcp.LoggingMessageParams{Level: level, Logger: "mcpactor", Data: text}, r.ID)
}

// oneLine returns the text of an error on one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// lists returns a list of each server, or why there is none. It waits for lists that are not known, as long as w says.
func (c *client) lists(ctx context.Context, method string, w waiting) ([]*content, []error) {
	got, errs := make([]*content, len(c.servers)), make([]error, len(c.servers))
	var all sync.WaitGroup
	for i, s := range c.servers {
		all.Go(func() { got[i], errs[i] = s.lists[method].get(ctx, w) })
	}
	all.Wait()
	return got, errs
}

// find returns the server of a tool or a prompt with a public name, or nil, and the name for the server. If there is none, err
// says which servers could not be listed.
func (c *client) find(r *mcpserver.Request, method, public string) (s *served, name string, err error) {
	if !c.offer.prefixed {
		return c.servers[0], public, nil
	}
	s, it, err := c.search(r, func(_ string, it item) bool { return it.public == public }, method)
	if s != nil {
		return s, it.name, nil
	}
	// The name of a tool says which server it belongs to, even if that was never listed.
	for _, s := range c.servers {
		if rest, its := strings.CutPrefix(public, toolset.SafeName(s.name, "")); its && toolset.SafeName(s.name, rest) == public {
			if l, _ := s.lists[method].get(r.Context, noWait); l == nil {
				return s, rest, nil
			}
		}
	}
	return nil, "", err
}

// holder returns the server that has a resource, or a template for it.
func (c *client) holder(r *mcpserver.Request, uri string) (*served, error) {
	if !c.offer.prefixed {
		return c.servers[0], nil
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
	for _, w := range []waiting{noWait, shortWait} {
		if w != noWait {
			r.Pass()
		}
		for _, method := range methods {
			got, errs := c.lists(r.Context, method, w)
			err = errors.Join(errs...)
			for i, s := range c.servers {
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
