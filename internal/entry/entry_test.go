package entry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/entry"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume/storetest"
)

func TestRecordIsWhatWasEncoded(t *testing.T) {
	value, err := entry.Encode(storetest.Record(7), time.Date(2026, 3, 31, 12, 0, 0, 0, time.FixedZone("", 3600)))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(value), `{"saved":"2026-03-31T11:00:00Z","record":{"sessionId":"`))
	got, err := entry.Decode(value)
	require.NoError(t, err)
	require.Equal(t, storetest.Record(7), got)
}

// A later version may add fields, and an earlier one may not have had some.
func TestRecordsOfOtherVersionsAreRead(t *testing.T) {
	for _, value := range []string{
		`{"saved":"2026-01-02T03:04:05Z","form":2,"record":{"sessionId":"x","generation":3,"later":{"a":[1]}},"later":true}`,
		`{"record":{"sessionId":"x","generation":3}}`,
	} {
		r, err := entry.Decode([]byte(value))
		require.NoError(t, err)
		require.Equal(t, "x", r.SessionID)
		require.EqualValues(t, 3, r.Generation)
	}
}

func TestAgeIsReadFromTheEntry(t *testing.T) {
	limit := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	require.True(t, entry.OlderThan(limit, []byte(`{"saved":"2025-12-31T23:59:59Z"}`)))
	require.False(t, entry.OlderThan(limit, []byte(`{"saved":"2026-01-01T00:00:00Z"}`)))
	require.False(t, entry.OlderThan(limit, []byte(`{}`)))
	require.False(t, entry.OlderThan(limit, []byte(`garbage`)))
}

func TestNamesAreReadable(t *testing.T) {
	for name, k := range map[string]messages.Key{
		"browser/conversation-1": {Server: "browser", Scope: "conversation-1"},
		"browser/default":        {Server: "browser"},
		"/a%2Fb%20%2A%FF":        {Scope: "a/b *\xff"},
	} {
		require.Equal(t, name, entry.Name(k))
		got, ok := entry.KeyOf(name)
		require.True(t, ok)
		require.Equal(t, k.Normal(), got)
	}
	for _, foreign := range []string{"", "a", "a/", "a/b/c", "a/%zz", "a/%61", "a/b c", "%/b"} {
		_, ok := entry.KeyOf(foreign)
		require.False(t, ok, foreign)
	}
}

func FuzzName(f *testing.F) {
	f.Add("a", "b/c", "a/b", "c")
	f.Fuzz(func(t *testing.T, server, scope, server2, scope2 string) {
		one, two := messages.Key{Server: server, Scope: scope}.Normal(), messages.Key{Server: server2, Scope: scope2}.Normal()
		require.Equal(t, one == two, entry.Name(one) == entry.Name(two))
		got, ok := entry.KeyOf(entry.Name(one))
		require.True(t, ok)
		require.Equal(t, one, got)
		if k, ok := entry.KeyOf(server); ok {
			require.Equal(t, server, entry.Name(k))
		}
	})
}

func TestErrorsNameTheOperationAndTheKey(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	k := messages.Key{Server: "a", Scope: "b"}
	require.NoError(t, entry.Failed(ctx, "load", k, nil))
	broken := errors.New("broken")
	require.EqualError(t, entry.Failed(ctx, "load", k, broken), "resume: load a/b: broken")
	require.EqualError(t, entry.FailedAll(ctx, "keys", broken), "resume: keys: broken")
	cancel()
	err := entry.Failed(ctx, "load", k, broken)
	require.EqualError(t, err, "resume: load a/b: context canceled: broken")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, broken)
	require.EqualError(t, entry.Failed(ctx, "load", k, ctx.Err()), "resume: load a/b: context canceled")
}

func TestVersionsOfEntries(t *testing.T) {
	_, err := entry.EncodeSwap(storetest.Record(1), 0, time.Now())
	require.EqualError(t, err, "the record has the version 0: set it to 1, one more than that of the record it replaces")
	r := storetest.Record(1)
	r.Version = 8
	value, err := entry.EncodeSwap(r, 7, time.Now())
	require.NoError(t, err)
	for version := range uint64(10) {
		is, err := entry.HasVersion(value, true, version)
		require.NoError(t, err)
		require.Equal(t, version == 8, is)
		is, err = entry.HasVersion(nil, false, version)
		require.NoError(t, err)
		require.Equal(t, version == 0, is)
		is, err = entry.HasVersion(nil, true, version)
		require.ErrorIs(t, err, entry.ErrGarbage)
		require.False(t, is)
	}
}
