package mcpbridge

import (
	"context"
	"io"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestServersWithPerKeyAreTheSameByTheirID(t *testing.T) {
	perKey := func(context.Context, messages.Key) (Server, error) { return Server{}, nil }
	for _, c := range []struct {
		one, other Server
		same       bool
	}{
		{Server{Command: "x", PerKey: perKey}, Server{Command: "x", PerKey: perKey}, false},
		{Server{Command: "x", PerKey: perKey, PerKeyID: "a"}, Server{Command: "x", PerKey: perKey, PerKeyID: "a"}, true},
		{Server{Command: "x", PerKey: perKey, PerKeyID: "a"}, Server{Command: "x", PerKey: perKey, PerKeyID: "b"}, false},
		{Server{Command: "x", PerKey: perKey, PerKeyID: "a"}, Server{Command: "y", PerKey: perKey, PerKeyID: "a"}, false},
		{Server{Command: "x", PerKey: perKey}, Server{Command: "x"}, false},
	} {
		require.Equal(t, c.same, c.one.Same(&c.other))
		require.Equal(t, c.same, c.other.Same(&c.one))
	}
	require.ErrorContains(t, (&Server{Name: "s", Command: "x", PerKeyID: "a"}).Validate(), "perKeyID: is for servers with perKey")
}

// The result is checked, and does not change what it was made of.
func TestResultOfPerKeyIsACopy(t *testing.T) {
	auth := AuthenticatorFunc(func(context.Context, messages.Key) (Credentials, error) { return nil, nil })
	base := Server{Name: "s", URL: "https://x", Headers: map[string]string{"A": "b"}, Args: []string{}, Auth: auth}
	srv := base
	srv.PerKey = func(context.Context, messages.Key) (Server, error) { return base, nil }
	got, err := srv.ForKey(t.Context(), messages.Key{})
	require.NoError(t, err)
	require.Nil(t, got.PerKey)
	got.Headers["A"] = "c"
	require.Equal(t, "b", base.Headers["A"])

	same, err := base.ForKey(t.Context(), messages.Key{})
	require.NoError(t, err)
	require.Same(t, &base, same, "without PerKey")
	got, err = (&Server{Name: "s", URL: "https://x", NoStream: true, Auth: auth, PerKey: func(context.Context, messages.Key) (Server, error) {
		return Server{URL: "https://y"}, nil
	}}).ForKey(t.Context(), messages.Key{})
	require.NoError(t, err)
	require.True(t, got.NoStream, "what the result leaves out is as in the server")
	require.NotNil(t, got.Auth)
	got, err = (&Server{Name: "s", Command: "x", Stderr: discard, PerKey: func(context.Context, messages.Key) (Server, error) {
		return Server{Command: "y", Stderr: discard}, nil
	}}).ForKey(t.Context(), messages.Key{})
	require.NoError(t, err)
	require.NotNil(t, got.Stderr, "it gets the key itself")
	declared := Server{Name: "s", URL: "https://x", Handles: []Handle{{Mint: "open", Path: "id", Release: "close"}}}
	for _, handles := range [][]Handle{nil, declared.Handles, {{Mint: "open", Path: "id", Release: "close", Max: 1}}} {
		declared.PerKey = func(context.Context, messages.Key) (Server, error) {
			return Server{URL: "https://y", Handles: handles}, nil
		}
		if got, err = declared.ForKey(t.Context(), messages.Key{}); handles != nil && handles[0].Max > 0 {
			require.ErrorContains(t, err, "handles: is different from that of the server")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, declared.Handles, got.Handles)
	}
	srv.Auth = nil
	_, err = srv.ForKey(t.Context(), messages.Key{})
	require.ErrorContains(t, err, "auth: is different")
}

func discard(messages.Key) io.Writer { return io.Discard }

// A new field of Server must not depend on the key unless it is listed.
func TestDependentFieldsExist(t *testing.T) {
	for name := range dependent {
		_, found := reflect.TypeFor[Server]().FieldByName(name)
		require.True(t, found, name)
	}
}
