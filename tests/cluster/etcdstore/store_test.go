// Package etcdstore_test tests the store of package cluster/etcdstore with a server of etcd.
package etcdstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/mcpactor/mcpactor/cluster/etcdstore"
	"github.com/mcpactor/mcpactor/internal/logintest"
	"github.com/mcpactor/mcpactor/login"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/resume/storetest"
	"github.com/mcpactor/mcpactor/tests/cluster/etcdserver"
)

// patience is enough for what happens soon.
const patience = 30 * time.Second

func key(scope string) messages.Key { return messages.Key{Server: "a", Scope: scope} }

// store opens a store on a server, with a prefix for each test.
func store(t *testing.T, server *etcdserver.Server, cfg etcdstore.Config) *etcdstore.Store {
	t.Helper()
	cfg.Endpoints, cfg.DialTimeout = []string{server.Endpoint()}, patience
	if cfg.Prefix == "" {
		cfg.Prefix = "/" + t.Name() + "/"
	}
	s, err := etcdstore.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func client(t *testing.T, server *etcdserver.Server) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestEtcdIsAStore(t *testing.T) {
	server := etcdserver.Start(t)
	storetest.Run(t, func(t *testing.T) mcpbridge.Store { return store(t, server, etcdstore.Config{}) })
	storetest.RunShared(t, func(t *testing.T) (one, other mcpbridge.Store) {
		return store(t, server, etcdstore.Config{}), store(t, server, etcdstore.Config{MaxAge: -1})
	})
	storetest.RunSwap(t, func(t *testing.T) (one, other mcpbridge.Swapper) {
		return store(t, server, etcdstore.Config{}), store(t, server, etcdstore.Config{MaxAge: -1})
	})
	storetest.RunGarbage(t, func(t *testing.T) (mcpbridge.Store, func(messages.Key, []byte)) {
		c, prefix := client(t, server), "/"+t.Name()+"/"
		return store(t, server, etcdstore.Config{Prefix: prefix}), func(k messages.Key, value []byte) {
			_, err := c.Put(t.Context(), prefix+k.Server+"/"+k.Scope, string(value))
			require.NoError(t, err)
		}
	})
}

func TestEtcdKeepsLogins(t *testing.T) {
	server := etcdserver.Start(t)
	logins := func(t *testing.T) login.Store {
		l, err := login.Shared(store(t, server, etcdstore.Config{}), []byte("a secret of at least 32 random bytes"))
		require.NoError(t, err)
		return l
	}
	logintest.Run(t, func(t *testing.T) (one, other login.Store) { return logins(t), logins(t) })
}

// docs/cluster.md says how many sessions etcd can remember. A record of a server that says more takes more.
func TestRecordTakesLessThanAKilobyte(t *testing.T) {
	server := etcdserver.Start(t)
	s, c := store(t, server, etcdstore.Config{}), client(t, server)
	const records = 2000
	before, err := c.Status(t.Context(), server.Endpoint())
	require.NoError(t, err)
	for i := range records {
		require.NoError(t, s.Save(t.Context(), key(fmt.Sprint("conversation-", i)), storetest.Record(1)))
	}
	after, err := c.Status(t.Context(), server.Endpoint())
	require.NoError(t, err)
	require.Less(t, float64(after.DbSizeInUse-before.DbSizeInUse)/records, 1000.0)
}

// Of several servers, one that does not answer costs one operation some time, and none fails. Nor does one that has ended.
func TestServerThatDoesNotAnswerIsLeft(t *testing.T) {
	server := etcdserver.Start(t)
	silent, requests := etcdserver.Silent(t)
	for _, other := range []string{silent, "127.0.0.1:1"} {
		for range 4 { // the first server is a random one
			requests.Store(0)
			s, err := etcdstore.Open(etcdstore.Config{Endpoints: []string{other, server.Endpoint()}, Prefix: "/" + t.Name() + "/"})
			require.NoError(t, err)
			for i := range 10 {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // as a supervisor does
				require.NoError(t, s.Save(ctx, key(fmt.Sprint(i)), storetest.Record(1)))
				_, err = s.Load(ctx, key(fmt.Sprint(i)))
				require.NoError(t, err)
				swapped, err := s.Swap(ctx, key(fmt.Sprint(i)), 0, &mcpbridge.Record{Version: 1})
				require.NoError(t, err)
				require.True(t, swapped)
				cancel()
			}
			require.LessOrEqual(t, requests.Load(), int64(1))
			require.NoError(t, s.Close())
		}
	}
}

func TestPrefixesAreApart(t *testing.T) {
	server := etcdserver.Start(t)
	one, other := store(t, server, etcdstore.Config{Prefix: "/x/"}), store(t, server, etcdstore.Config{Prefix: "/x"})
	require.NoError(t, one.Save(t.Context(), key("b"), storetest.Record(1)))
	r, err := other.Load(t.Context(), key("b"))
	require.NoError(t, err)
	require.Nil(t, r)
	keys, err := other.Keys(t.Context()) // "/a/b" is not the name of a record
	require.NoError(t, err)
	require.Empty(t, keys)
	keys, err = one.Keys(t.Context())
	require.NoError(t, err)
	require.Equal(t, []messages.Key{key("b")}, keys)
}

func TestDefaultPrefixNamesRecordsReadably(t *testing.T) {
	server := etcdserver.Start(t)
	s, err := etcdstore.Open(etcdstore.Config{Client: client(t, server)})
	require.NoError(t, err)
	require.NoError(t, s.Save(t.Context(), messages.Key{Server: "browser", Scope: "tenant/7"}, storetest.Record(1)))
	got, err := client(t, server).Get(t.Context(), "/mcpactor/sessions/"+"browser/tenant%2F7")
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Delete(t.Context(), key("b")), resume.ErrClosed)
}

func TestOldRecordsExpire(t *testing.T) {
	server := etcdserver.Start(t)
	young, forever := store(t, server, etcdstore.Config{MaxAge: time.Second}), store(t, server, etcdstore.Config{MaxAge: -1})
	require.NoError(t, young.Save(t.Context(), key("old"), storetest.Record(1)))
	require.NoError(t, young.Save(t.Context(), key("renewed"), storetest.Record(1)))
	require.NoError(t, forever.Save(t.Context(), key("renewed"), storetest.Record(2)))
	for _, scope := range []string{"old", "swapped"} {
		swapped, err := young.Swap(t.Context(), key(scope), 0, &mcpbridge.Record{Version: 1})
		require.NoError(t, err)
		require.True(t, swapped)
	}
	r, err := young.Load(t.Context(), key("old"))
	require.NoError(t, err)
	require.NotNil(t, r)
	require.Eventually(t, func() bool {
		keys, err := young.Keys(t.Context())
		return err == nil && len(keys) == 1 && keys[0] == key("renewed")
	}, patience, 50*time.Millisecond)
}

func TestRecordsShareALease(t *testing.T) {
	server := etcdserver.Start(t)
	s, c := store(t, server, etcdstore.Config{}), client(t, server)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if err := s.Save(t.Context(), key(fmt.Sprint(i)), storetest.Record(1)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	leases, err := c.Leases(t.Context())
	require.NoError(t, err)
	require.Len(t, leases.Leases, 1)
	left, err := c.TimeToLive(t.Context(), leases.Leases[0].ID)
	require.NoError(t, err)
	require.EqualValues(t, 33*24*60*60, left.GrantedTTL, "30 days and a tenth")

	// A lease that is gone is replaced.
	_, err = c.Revoke(t.Context(), leases.Leases[0].ID)
	require.NoError(t, err)
	require.NoError(t, s.Save(t.Context(), key("b"), storetest.Record(2)))
	keys, err := s.Keys(t.Context())
	require.NoError(t, err)
	require.Equal(t, []messages.Key{key("b")}, keys)
	leases, err = c.Leases(t.Context())
	require.NoError(t, err)
	_, err = c.Revoke(t.Context(), leases.Leases[0].ID)
	require.NoError(t, err)
	swapped, err := s.Swap(t.Context(), key("b"), 0, &mcpbridge.Record{Version: 1})
	require.NoError(t, err)
	require.True(t, swapped)
	leases, err = c.Leases(t.Context())
	require.NoError(t, err)
	require.Len(t, leases.Leases, 1)
}

func TestStoreWorksAgainAfterAnOutage(t *testing.T) {
	server := etcdserver.Start(t)
	s := store(t, server, etcdstore.Config{})
	require.NoError(t, s.Save(t.Context(), key("b"), storetest.Record(1)))
	server.Stop()
	for name, do := range map[string]func(context.Context) error{
		"load":   func(ctx context.Context) error { _, err := s.Load(ctx, key("b")); return err },
		"keys":   func(ctx context.Context) error { _, err := s.Keys(ctx); return err },
		"delete": func(ctx context.Context) error { return s.Delete(ctx, key("other")) },
		"save":   func(ctx context.Context) error { return s.Save(ctx, key("other"), storetest.Record(1)) },
		"swap": func(ctx context.Context) error {
			_, err := s.Swap(ctx, key("other"), 0, &mcpbridge.Record{Version: 1})
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		begun := time.Now()
		err := do(ctx)
		require.ErrorContains(t, err, "resume: "+name)
		require.Less(t, time.Since(begun), 10*time.Second)
		storetest.Hidden(t, err)
		cancel()
	}
	require.NoError(t, server.Start())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := s.Load(ctx, key("b"))
	require.NoError(t, err)
	require.Equal(t, storetest.Record(1), r)
	require.NoError(t, s.Save(ctx, key("b"), storetest.Record(2)))
	keys, err := s.Keys(ctx)
	require.NoError(t, err)
	require.Equal(t, []messages.Key{key("b")}, keys)
}

// The role that the package's documentation asks for is enough, and another user sees nothing.
func TestRoleOfThePrefixIsEnough(t *testing.T) {
	server := etcdserver.Start(t)
	c := client(t, server)
	grant := func(_ any, err error) { t.Helper(); require.NoError(t, err) }
	grant(c.RoleAdd(t.Context(), "sessions"))
	grant(c.RoleGrantPermission(t.Context(), "sessions", "/s/", clientv3.GetPrefixRangeEnd("/s/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	for user, role := range map[string]string{"root": "root", "mcpactor": "sessions", "other": ""} {
		grant(c.UserAdd(t.Context(), user, "secret of "+user))
		if role != "" {
			grant(c.UserGrantRole(t.Context(), user, role))
		}
	}
	grant(c.AuthEnable(t.Context()))

	s := store(t, server, etcdstore.Config{Prefix: "/s/", Username: "mcpactor", Password: "secret of mcpactor"})
	require.NoError(t, s.Save(t.Context(), key("b"), storetest.Record(1)))
	require.NoError(t, s.Save(t.Context(), key("b"), storetest.Record(2)))
	r, err := s.Load(t.Context(), key("b"))
	require.NoError(t, err)
	require.Equal(t, storetest.Record(2), r)
	keys, err := s.Keys(t.Context())
	require.NoError(t, err)
	require.Equal(t, []messages.Key{key("b")}, keys)
	swapped, err := s.Swap(t.Context(), key("b"), 0, &mcpbridge.Record{Version: 1})
	require.NoError(t, err)
	require.True(t, swapped)

	for _, other := range []*etcdstore.Store{
		store(t, server, etcdstore.Config{Prefix: "/s/", Username: "other", Password: "secret of other"}),
		store(t, server, etcdstore.Config{Prefix: "/elsewhere/", Username: "mcpactor", Password: "secret of mcpactor"}),
		store(t, server, etcdstore.Config{Prefix: "/s/"}),
	} {
		_, err = other.Load(t.Context(), key("b"))
		require.Error(t, err)
		_, err = other.Keys(t.Context())
		require.Error(t, err)
		require.Error(t, other.Save(t.Context(), key("b"), storetest.Record(3)))
		require.Error(t, other.Delete(t.Context(), key("b")))
		_, err = other.Swap(t.Context(), key("b"), 1, &mcpbridge.Record{Version: 2})
		require.Error(t, err)
	}
	_, err = etcdstore.Open(etcdstore.Config{Endpoints: []string{server.Endpoint()}, Username: "mcpactor", Password: storetest.Secret})
	require.Error(t, err)
	storetest.Hidden(t, err)
	require.NoError(t, s.Delete(t.Context(), key("b")))
}
