// Package storetest tests implementations of [mcpbridge.Store]. The stores of package resume
// pass it, and a store of your own should:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) mcpbridge.Store { return newStore(t) })
//	}
//
// If your store is shared by processes, call [RunShared] as well, and [RunSwap] if it is an [mcpbridge.Swapper].
package storetest

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Secret is the session id of [Record].
const Secret = "hush-0123456789"

// Record returns a new record in which every field is set. Two records of a generation are
// equal.
func Record(generation uint64) *mcpbridge.Record {
	return &mcpbridge.Record{
		Resume: mcpbridge.Resume{
			SessionID: Secret,
			Server: &mcp.InitializeResult{
				Meta:            mcp.Meta{"build": "42"},
				ProtocolVersion: "2025-11-25",
				Instructions:    "Log in first.\n<b>&\u2028é</b>",
				ServerInfo:      &mcp.Implementation{Name: "browser", Title: "A browser", Version: "1.2.3"},
				Capabilities: &mcp.ServerCapabilities{
					Experimental: map[string]any{"x": map[string]any{"deep": []any{"a", 1.5, true, nil}}},
					Completions:  &mcp.CompletionCapabilities{},
					Prompts:      &mcp.PromptCapabilities{ListChanged: true},
					Resources:    &mcp.ResourceCapabilities{Subscribe: true},
					Tools:        &mcp.ToolCapabilities{},
				},
			},
			Endpoint: "sha256:abc",
			Identity: "sha256:def",
			Cookies:  `pod="hush hush"; lb=<&>`,
		},
		Generation: generation,
	}
}

// Hidden checks that values, printed with any verb or logged, do not contain
// [Secret].
func Hidden(t testing.TB, values ...any) {
	t.Helper()
	for _, v := range values {
		var out bytes.Buffer
		for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), zerolog.NewSlogHandler(zerolog.New(&out))} {
			slog.New(h).Info("it", "value", v)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb, v)
		}
		said := out.String()
		require.NotContains(t, said, Secret)
		require.NotContains(t, said, fmt.Sprintf("%x", Secret))
		require.NotContains(t, said, strings.Trim(fmt.Sprintf("%d", []byte(Secret)), "[]"))
	}
}

func key(server, scope string) messages.Key { return messages.Key{Server: server, Scope: scope} }

// has checks that a store has a record, or none if it is nil.
func has(t *testing.T, s mcpbridge.Store, k messages.Key, want *mcpbridge.Record) {
	t.Helper()
	got, err := s.Load(t.Context(), k)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// lists checks the keys of a store.
func lists(t *testing.T, s mcpbridge.Store, want ...messages.Key) {
	t.Helper()
	got, err := s.Keys(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, want, got)
}
