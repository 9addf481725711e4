package bridge

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/results"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// maxPages bounds a list whose cursors are all different.
const maxPages = 1000

// pages gets one page after the other until there are no more. add adds a page to the result, and next returns the cursor of the
// next one. All pages together may have limit bytes of JSON. A single page was bounded when it was read.
//
// If the server does not say how to get all pages, pages returns why the list is incomplete. An empty cursor is a cursor: protocol
// 2026-07-28 says so. Many servers of earlier protocols end a list with one: then they refuse it, or answer with a page that has
// come before.
func pages[R any](ex *wire.Exchange, limit int, get func(cursor string) (R, error), add func(R), next func(R) (cursor string)) (incomplete string, err error) {
	asked, seen, size := map[string]bool{}, map[[sha256.Size]byte]bool{}, 0
	for cursor, n := "", 1; ; n++ {
		page, err := get(cursor)
		if _, refused := ex.Outcome(); err != nil && refused && cursor == results.EmptyCursor {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		before := cursor
		if cursor = next(page); cursor == "" && n == 1 {
			add(page)
			return "", nil
		}
		bytes, sum := measure(page)
		if seen[sum] {
			ex.DropKept()
			if before == results.EmptyCursor {
				return "", nil
			}
			return fmt.Sprintf("page %d is one that has come before", n), nil
		}
		add(page)
		seen[sum], size = true, size+bytes
		switch {
		case size > limit:
			return "", &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: fmt.Sprintf("the server's list has more than %d bytes (maxResult) on its first %d pages", limit, n)}
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

// measure returns the size of a page as JSON, and its hash. On the wire it had the same size, apart from
// spaces and from fields that the SDK does not know.
func measure(page any) (size int, sum [sha256.Size]byte) {
	s := sized{Hash: sha256.New()}
	e := json.NewEncoder(&s)
	e.SetEscapeHTML(false)
	e.Encode(page) //nolint:errcheck // it was JSON
	s.Sum(sum[:0])
	return s.size, sum
}

// sized is a hash that knows the size of what is written to it.
type sized struct {
	hash.Hash
	size int
}

// Write counts and hashes data.
func (s *sized) Write(data []byte) (int, error) {
	s.size += len(data)
	return s.Hash.Write(data)
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
