package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/results"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

const (
	// maxPages bounds a list whose cursors are all different.
	maxPages = 1000
	// emptyCursorTimeout bounds the wait for a page with an empty cursor, unless the pages before have taken longer. A server that
	// ends its lists with an empty cursor may not answer it.
	emptyCursorTimeout = 2 * time.Second
)

// page has the parts that pages of all lists have.
type page[T any] struct {
	meta   *mcp.Meta
	caches *mcp.Cacheable
	things *[]T
	next   *string // the cursor of the next page
}

// add adds what is on another page.
func (p page[T]) add(other page[T]) {
	*p.meta, *p.things, *p.caches = *other.meta, append(*p.things, *other.things...), narrower(*p.caches, *other.caches)
}

// names names what is on the page, in any order.
func (p page[T]) names() string {
	var names []string
	for _, thing := range *p.things {
		switch thing := any(thing).(type) {
		case *mcp.Tool:
			names = append(names, thing.Name)
		case *mcp.Prompt:
			names = append(names, thing.Name)
		case *mcp.Resource:
			names = append(names, thing.URI)
		case *mcp.ResourceTemplate:
			names = append(names, thing.URITemplate)
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("%q", names)
}

// pages gets one page after the other, and adds them to all, until there are no more. of returns the parts of a page. All pages
// together may have c.maxBytes bytes of JSON. A single page was bounded when it was read.
//
// If the server does not say how to get all pages, pages returns why the list is incomplete. An empty cursor is a cursor: protocol
// 2026-07-28 says so. Many servers of earlier protocols end a list with one. They refuse it, or answer with a page that has come
// before. Whatever else such a server does with the cursor, it has listed what is on the pages before. So it has if a later page
// fails.
func pages[R, T any](ctx context.Context, c caller, all R, get func(ctx context.Context, cursor string) (R, error), of func(R) page[T]) (incomplete string, err error) {
	ex, whole := wire.ExchangeOf(ctx), of(all)
	began := time.Now()
	asked, seen, size := map[string]bool{}, map[string]bool{}, 0
	for cursor, n := "", 1; ; n++ {
		result, err := inTime(ctx, began, cursor, get)
		switch {
		case err == nil:
		case cursor == results.EmptyCursor:
			return c.afterEmptyCursor(ex, n, err), nil
		case n > 1:
			return c.afterFailure(ex, n, err)
		default:
			return "", err
		}
		its, before := of(result), cursor
		if cursor = *its.next; cursor == "" && n == 1 {
			whole.add(its)
			return "", nil
		}
		names, isEmpty := its.names(), len(*its.things) == 0
		switch {
		case before == results.EmptyCursor && (seen[names] || isEmpty && cursor == before):
			ex.DropLast()
			return "", nil
		case seen[names]:
			ex.DropLast()
			return fmt.Sprintf("page %d is one that has come before", n), nil
		}
		whole.add(its)
		seen[names], size = !isEmpty, size+sizeOf(result)
		switch {
		case size > c.maxBytes:
			return "", &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: fmt.Sprintf("the server's list has more than %d bytes (maxResult) on its first %d pages", c.maxBytes, n)}
		case cursor == "":
			return "", nil
		case cursor == results.OddCursor:
			return fmt.Sprintf("the cursor on page %d is no text", n), nil
		case asked[cursor]:
			return fmt.Sprintf("page %d names a page as the next that has come before", n), nil
		case n == maxPages:
			return fmt.Sprintf("it has more than %d pages", maxPages), nil
		}
		asked[cursor] = true
	}
}

// errUnanswered is the error of [inTime] for a page that the server did not give.
var errUnanswered = errors.New("it was not answered in time")

// inTime gets a page of a list that began at the given time. A page with an empty cursor has its own time limit.
func inTime[R any](ctx context.Context, began time.Time, cursor string, get func(context.Context, string) (R, error)) (R, error) {
	if cursor != results.EmptyCursor {
		return get(ctx, cursor)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, max(emptyCursorTimeout, time.Since(began)), errUnanswered)
	defer cancel()
	result, err := get(ctx, cursor)
	if err != nil && errors.Is(context.Cause(ctx), errUnanswered) {
		err = errUnanswered
	}
	return result, err
}

// afterEmptyCursor returns why a list is incomplete whose page n, the one with an empty cursor, has failed with err. Before
// protocol 2026-07-28, a list that ends with an empty cursor is complete if the server refuses the cursor.
func (c caller) afterEmptyCursor(ex *wire.Exchange, n int, err error) (incomplete string) {
	if errors.Is(err, errUnanswered) {
		return fmt.Sprintf("page %d, which has an empty cursor: %v", n, err)
	}
	e := c.errors.explain(ex, ex, err)
	isRefusal := e.Code == rpc.CodeInvalidParams || e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity
	if isRefusal && !c.isModern {
		return ""
	}
	return fmt.Sprintf("page %d, which has an empty cursor, failed: %s", n, e.Detail)
}

// afterFailure returns why a list is incomplete whose page n has failed with err, which is not the first. It returns the error if it
// may be about the session or the caller: then the whole list can be asked for again.
func (c caller) afterFailure(ex *wire.Exchange, n int, err error) (incomplete string, failed error) {
	e := c.errors.explain(ex, ex, err)
	isOfPage := e.Class == mcpbridge.ServerError || e.Class == mcpbridge.Protocol || e.Class == mcpbridge.Invalid && e.Own
	if !isOfPage || e.Session != mcpbridge.Alive || e.Doubt && !e.Own {
		return "", err
	}
	return fmt.Sprintf("page %d failed: %s", n, e.Detail), nil
}

// narrower returns for how long, and for whom, both of two parts of a list may be kept. A part without a ttlMs says nothing
// about the time.
func narrower(one, two mcp.Cacheable) mcp.Cacheable {
	if one.TTLMs <= 0 || two.TTLMs > 0 && two.TTLMs < one.TTLMs {
		one.TTLMs = two.TTLMs
	}
	if one.CacheScope != "private" {
		one.CacheScope = two.CacheScope
	}
	return one
}

// sizeOf returns the size of a page as JSON. On the wire it had the same size, apart from
// spaces and from fields that the SDK does not know.
func sizeOf(page any) int {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(page) //nolint:errcheck // it was JSON
	return b.Len()
}

// withEmptyCursor returns the parameters of a list request that asks for the page with an empty cursor, or nil for
// another request. The SDK would send no cursor.
func withEmptyCursor(params mcp.Params, method string) mcp.Params {
	if !strings.HasSuffix(method, "/list") || params == nil {
		return nil
	}
	if cursor := reflect.Indirect(reflect.ValueOf(params)).FieldByName("Cursor"); !cursor.IsValid() || cursor.String() != results.EmptyCursor {
		return nil
	}
	data, err := rpc.EncodeParams(params)
	var object map[string]json.RawMessage
	if err != nil || json.Unmarshal(data, &object) != nil {
		return nil
	}
	object["cursor"] = json.RawMessage(`""`)
	data, err = json.Marshal(object)
	if err != nil {
		return nil
	}
	return &customParams{fields: data}
}
