package resume

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

const secret = "hush-0123456789"

func key(server, scope string) messages.Key { return messages.Key{Server: server, Scope: scope} }

// sample returns a record with every field of a server.
func sample(generation uint64) *mcpbridge.Record {
	return &mcpbridge.Record{
		Resume: mcpbridge.Resume{
			SessionID: secret,
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

func openAt(t testing.TB, path string, cfg Config) *File {
	t.Helper()
	f, err := Open(path, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func pathIn(t testing.TB) string { return filepath.Join(t.TempDir(), "sessions.db") }

func TestMemoryIsAStore(t *testing.T) {
	conforms(t, func(*testing.T) mcpbridge.Store { return NewMemory() })
}

func TestFileIsAStore(t *testing.T) {
	conforms(t, func(t *testing.T) mcpbridge.Store { return openAt(t, pathIn(t), Config{}) })
}

// conforms checks that a store implements [mcpbridge.Store].
func conforms(t *testing.T, open func(*testing.T) mcpbridge.Store) {
	ctx := context.Background()
	has := func(t *testing.T, s mcpbridge.Store, k messages.Key, want *mcpbridge.Record) {
		t.Helper()
		got, err := s.Load(ctx, k)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}

	t.Run("an unknown key has no record", func(t *testing.T) {
		has(t, open(t), key("a", "b"), nil)
	})

	t.Run("what was saved is loaded", func(t *testing.T) {
		s := open(t)
		require.NoError(t, s.Save(ctx, key("a", "b"), sample(1)))
		has(t, s, key("a", "b"), sample(1))
		for _, bare := range []*mcpbridge.Record{{}, {Resume: mcpbridge.Resume{SessionID: "only an id"}}, {Generation: 1<<64 - 1}} {
			require.NoError(t, s.Save(ctx, key("a", "b"), bare))
			has(t, s, key("a", "b"), bare)
		}
	})

	t.Run("the last one saved counts", func(t *testing.T) {
		s := open(t)
		for i := range uint64(3) {
			require.NoError(t, s.Save(ctx, key("a", "b"), sample(i)))
		}
		has(t, s, key("a", "b"), sample(2))
	})

	t.Run("what is deleted is gone, also when it was not there", func(t *testing.T) {
		s := open(t)
		require.NoError(t, s.Delete(ctx, key("a", "b")))
		require.NoError(t, s.Save(ctx, key("a", "b"), sample(1)))
		for range 2 {
			require.NoError(t, s.Delete(ctx, key("a", "b")))
			has(t, s, key("a", "b"), nil)
		}
		require.NoError(t, s.Save(ctx, key("a", "b"), sample(2)))
		has(t, s, key("a", "b"), sample(2))
	})

	t.Run("keys that look alike are not", func(t *testing.T) {
		s := open(t)
		keys := []messages.Key{
			key("a", "b/c"), key("a/b", "c"), key("ab", "c"), key("a", "bc"), key("a", "B/c"), key("", "a"), key("a", "a"),
			key("\x01a", "b"), key("", "\x01ab"), key("a", "b\x00"), key("a", "b"), key(`a","b`, "c"), key("a", `b","c`),
			key("a", "é"), key("a", "e\u0301"), key("a", "\U0001f600"), key("a", "\xff"), key("a", "\xfe"), key("a", "\ufffd"),
			key("a", strings.Repeat("ä", messages.MaxScope/2)), key("a", strings.Repeat("ä", messages.MaxScope/2-1)),
			key(strings.Repeat("n", 127), "b"), key(strings.Repeat("n", 128), "b"),
		}
		for i, k := range keys {
			require.NoError(t, s.Save(ctx, k, sample(uint64(i))), "%q", k)
		}
		for i, k := range keys {
			has(t, s, k, sample(uint64(i)))
		}
		for i, k := range keys {
			require.NoError(t, s.Delete(ctx, k))
			has(t, s, k, nil)
			for j, other := range keys[i+1:] {
				has(t, s, other, sample(uint64(i+1+j)))
			}
		}
	})

	t.Run("an empty scope is the default one", func(t *testing.T) {
		s := open(t)
		require.NoError(t, s.Save(ctx, key("a", ""), sample(1)))
		has(t, s, key("a", messages.DefaultScope), sample(1))
		require.NoError(t, s.Delete(ctx, key("a", messages.DefaultScope)))
		has(t, s, key("a", ""), nil)
	})

	t.Run("nobody changes what is stored from outside", func(t *testing.T) {
		s := open(t)
		change := func(r *mcpbridge.Record) {
			r.SessionID, r.Generation = "other", 99
			r.Server.Meta["build"] = "other"
			r.Server.ServerInfo.Name = "other"
			r.Server.Capabilities.Experimental["x"].(map[string]any)["deep"].([]any)[0] = "other"
			r.Server.Capabilities.Resources.Subscribe = false
		}
		given := sample(1)
		require.NoError(t, s.Save(ctx, key("a", "b"), given))
		change(given)
		has(t, s, key("a", "b"), sample(1))
		taken, err := s.Load(ctx, key("a", "b"))
		require.NoError(t, err)
		change(taken)
		has(t, s, key("a", "b"), sample(1))
	})

	t.Run("a context that ended before ends it", func(t *testing.T) {
		s := open(t)
		require.NoError(t, s.Save(ctx, key("a", "b"), sample(1)))
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, err := s.Load(over, key("a", "b"))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, s.Save(over, key("a", "b"), sample(2)), context.Canceled)
		require.ErrorIs(t, s.Delete(over, key("a", "b")), context.Canceled)
		has(t, s, key("a", "b"), sample(1))
	})

	t.Run("what cannot be kept is refused, and what was there stays", func(t *testing.T) {
		s := open(t)
		require.NoError(t, s.Save(ctx, key("a", "b"), sample(1)))
		require.ErrorContains(t, s.Save(ctx, key("a", "b"), nil), "nil")
		binary := sample(2)
		binary.SessionID += "\xff"
		odd := sample(2)
		odd.Server.Capabilities.Experimental["f"] = func() {}
		for _, r := range []*mcpbridge.Record{binary, odd} {
			err := s.Save(ctx, key("a", "b"), r)
			require.Error(t, err)
			require.NotContains(t, err.Error(), secret)
		}
		has(t, s, key("a", "b"), sample(1))
	})

	t.Run("many may use it at once", func(t *testing.T) {
		s := open(t)
		var all sync.WaitGroup
		errs := make(chan error, 1000)
		for i := range 16 {
			own := key("a", fmt.Sprint("own ", i))
			all.Go(func() {
				for n := range uint64(4) {
					errs <- s.Save(ctx, own, sample(n))
					r, err := s.Load(ctx, own)
					if err == nil && (r == nil || r.Generation != n) {
						err = fmt.Errorf("loaded %v, saved %d", r, n)
					}
					errs <- err
					errs <- s.Save(ctx, key("a", "shared"), sample(n))
					_, err = s.Load(ctx, key("a", "shared"))
					errs <- err
					errs <- s.Delete(ctx, key("a", "shared"))
				}
				if i%2 == 0 {
					errs <- s.Delete(ctx, own)
				}
			})
		}
		all.Wait()
		close(errs)
		for err := range errs {
			require.NoError(t, err)
		}
		for i := range 16 {
			want := sample(3)
			if i%2 == 0 {
				want = nil
			}
			has(t, s, key("a", fmt.Sprint("own ", i)), want)
		}
		has(t, s, key("a", "shared"), nil)
	})

	t.Run("it does not print what it keeps", func(t *testing.T) {
		s := open(t)
		require.NoError(t, s.Save(ctx, key("a", "b"), sample(1)))
		r, err := s.Load(ctx, key("a", "b"))
		require.NoError(t, err)
		hidden(t, s, r, *r, r.Resume, &r.Resume)
	})
}

// hidden checks that printed and logged values contain no secret.
func hidden(t *testing.T, values ...any) {
	t.Helper()
	for _, v := range values {
		said := logged(v)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			said += fmt.Sprintf(verb, v)
		}
		require.NotContains(t, said, secret)
		require.NotContains(t, said, fmt.Sprintf("%x", secret))
		require.NotContains(t, said, strings.Trim(fmt.Sprintf("%d", []byte(secret)), "[]"))
	}
}

// asKept is an entry in the form of the file.
func asKept(t testing.TB, saved string, r *mcpbridge.Record) []byte {
	t.Helper()
	record, err := json.Marshal(r)
	require.NoError(t, err)
	return fmt.Appendf(nil, `{"saved":%q,"record":%s}`, saved, record)
}
