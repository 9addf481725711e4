package etcdstore_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/mcpactor/mcpactor/cluster/etcdstore"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/resume/storetest"
)

// The tests with a server are in tests/cluster/etcdstore.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = messages.Key{Server: "a", Scope: "b"}

// silent returns the address of a listener that accepts connections, and never answers.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func TestConfigIsChecked(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{silent(t)}, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer client.Close()
	there := []string{"127.0.0.1:1"}
	for want, cfg := range map[string]etcdstore.Config{
		"endpoints: there are none":               {},
		"client: has its own endpoints":           {Client: client, Endpoints: there},
		"username, password: one of them":         {Endpoints: there, Username: "u"},
		"dialTimeout: -1ns is negative":           {Endpoints: there, DialTimeout: -1},
		"maxAge: 1ms is below a second":           {Endpoints: there, MaxAge: time.Millisecond},
		"maxAge: -1s is below a second: -1 keeps": {Endpoints: there, MaxAge: -time.Second},
	} {
		_, err := etcdstore.Open(cfg)
		require.ErrorContains(t, err, "resume: open etcd: "+want)
	}
}

func TestConfigAndStoreDoNotShowThePassword(t *testing.T) {
	cfg := etcdstore.Config{Endpoints: []string{silent(t)}, Username: "u", Password: storetest.Secret, DialTimeout: 50 * time.Millisecond}
	storetest.Hidden(t, cfg, &cfg)
	require.Equal(t, "etcd at "+cfg.Endpoints[0]+", prefix /x/", etcdstore.Config{Endpoints: cfg.Endpoints, Prefix: "/x/"}.String())
	_, err := etcdstore.Open(cfg) // a password is checked at once
	require.ErrorIs(t, err, context.DeadlineExceeded)
	storetest.Hidden(t, err)
}

func TestServerThatDoesNotAnswerEndsWithTheContext(t *testing.T) {
	for _, maxAge := range []time.Duration{0, -1} {
		s, err := etcdstore.Open(etcdstore.Config{Endpoints: []string{silent(t)}, MaxAge: maxAge})
		require.NoError(t, err)
		defer s.Close()
		for name, do := range map[string]func(context.Context) error{
			"load":   func(ctx context.Context) error { _, err := s.Load(ctx, key); return err },
			"keys":   func(ctx context.Context) error { _, err := s.Keys(ctx); return err },
			"delete": func(ctx context.Context) error { return s.Delete(ctx, key) },
			"save":   func(ctx context.Context) error { return s.Save(ctx, key, storetest.Record(1)) },
			"swap": func(ctx context.Context) error {
				_, err := s.Swap(ctx, key, 0, &mcpbridge.Record{Version: 1})
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			err := do(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			require.ErrorContains(t, err, "resume: "+name)
			storetest.Hidden(t, err)
			cancel()
		}
	}
}

func TestClosedStoreSaysSo(t *testing.T) {
	s, err := etcdstore.Open(etcdstore.Config{Endpoints: []string{silent(t)}})
	require.NoError(t, err)
	begun := make(chan error)
	go func() {
		_, err := s.Load(t.Context(), key)
		begun <- err
	}()
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-begun, resume.ErrClosed)
	_, err = s.Load(t.Context(), key)
	require.EqualError(t, err, "resume: load a/b: the store is closed")
	_, err = s.Keys(t.Context())
	require.ErrorIs(t, err, resume.ErrClosed)
	require.ErrorIs(t, s.Save(t.Context(), key, storetest.Record(1)), resume.ErrClosed)
	require.ErrorIs(t, s.Delete(t.Context(), key), resume.ErrClosed)
	_, err = s.Swap(t.Context(), key, 0, &mcpbridge.Record{Version: 1})
	require.ErrorIs(t, err, resume.ErrClosed)
	require.Contains(t, fmt.Sprintf("%#v", s), "sessions in etcd at 127.0.0.1:")
}

func TestClientOfTheCallerStaysOpen(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{silent(t)}, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer client.Close()
	s, err := etcdstore.Open(etcdstore.Config{Client: client})
	require.NoError(t, err)
	require.Equal(t, "sessions in etcd, prefix /mcpactor/sessions/", s.String())
	require.NoError(t, s.Close())
	require.NoError(t, client.Ctx().Err())
}
