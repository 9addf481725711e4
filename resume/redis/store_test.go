package redis_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume/redis"
	"github.com/mcpactor/mcpactor/resume/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func key(scope string) messages.Key { return messages.Key{Server: "a", Scope: scope} }

// store returns a store with a client of its own.
func store(t *testing.T, addr string, cfg redis.Config) *redis.Store {
	t.Helper()
	client := goredis.NewClient(&goredis.Options{Addr: addr})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	s, err := redis.New(client, cfg)
	require.NoError(t, err)
	return s
}

// clustered returns a store with a client of a Redis Cluster.
func clustered(t *testing.T, opts goredis.ClusterOptions) *redis.Store {
	t.Helper()
	client := goredis.NewClusterClient(&opts)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	s, err := redis.New(client, redis.Config{})
	require.NoError(t, err)
	return s
}

func TestRedisIsAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) mcpbridge.Store {
		return store(t, miniredis.RunT(t).Addr(), redis.Config{})
	})
	storetest.RunShared(t, func(t *testing.T) (one, other mcpbridge.Store) {
		server := miniredis.RunT(t)
		return store(t, server.Addr(), redis.Config{}), store(t, server.Addr(), redis.Config{MaxAge: -1})
	})
	storetest.RunSwap(t, func(t *testing.T) (one, other mcpbridge.Swapper) {
		server := miniredis.RunT(t)
		return store(t, server.Addr(), redis.Config{}), store(t, server.Addr(), redis.Config{MaxAge: -1})
	})
	storetest.RunGarbage(t, func(t *testing.T) (mcpbridge.Store, func(messages.Key, []byte)) {
		server := miniredis.RunT(t)
		return store(t, server.Addr(), redis.Config{}), func(k messages.Key, value []byte) {
			require.NoError(t, server.Set("mcpactor:sessions:"+k.Server+"/"+k.Scope, string(value)))
		}
	})
}

func TestRedisClusterIsAStore(t *testing.T) {
	opts := func(server *miniredis.Miniredis) goredis.ClusterOptions {
		return goredis.ClusterOptions{Addrs: []string{server.Addr()}}
	}
	storetest.Run(t, func(t *testing.T) mcpbridge.Store { return clustered(t, opts(miniredis.RunT(t))) })
	storetest.RunSwap(t, func(t *testing.T) (one, other mcpbridge.Swapper) {
		server := miniredis.RunT(t)
		return clustered(t, opts(server)), clustered(t, opts(server))
	})
}

func TestUnsuitableClientsAndConfigsAreRefused(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	for _, age := range []time.Duration{time.Microsecond, -time.Second} {
		_, err := redis.New(client, redis.Config{MaxAge: age})
		require.ErrorContains(t, err, "resume: new redis store: maxAge: "+age.String()+" is below a millisecond")
	}
	_, err := redis.New(nil, redis.Config{})
	require.ErrorContains(t, err, "client: it is a <nil>")
	_, err = redis.New((*goredis.Client)(nil), redis.Config{})
	require.ErrorContains(t, err, "use a *redis.Client")
	ring := goredis.NewRing(&goredis.RingOptions{})
	defer ring.Close()
	_, err = redis.New(ring, redis.Config{})
	require.ErrorContains(t, err, "client: it is a *redis.Ring")
	replicas := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, RouteByLatency: true})
	defer replicas.Close()
	_, err = redis.New(replicas, redis.Config{})
	require.ErrorContains(t, err, "reads from replicas")
}

func TestPrefixesAreApart(t *testing.T) {
	server := miniredis.RunT(t)
	prefixes := []string{"x", "x:", "*", "[x]", `\`, "?", ""}
	for i, prefix := range prefixes {
		s := store(t, server.Addr(), redis.Config{Prefix: prefix})
		require.NoError(t, s.Save(t.Context(), key(fmt.Sprint(i)), storetest.Record(1)))
	}
	require.NoError(t, server.Set("x", "of another program"))
	require.NoError(t, server.Set("*a/%zz", "of another program"))
	for i, prefix := range prefixes[1:] {
		keys, err := store(t, server.Addr(), redis.Config{Prefix: prefix}).Keys(t.Context())
		require.NoError(t, err)
		require.Equal(t, []messages.Key{key(fmt.Sprint(i + 1))}, keys, prefix)
	}
	require.True(t, server.Exists("mcpactor:sessions:a/6"))
}

func TestOldRecordsExpire(t *testing.T) {
	server := miniredis.RunT(t)
	s, forever := store(t, server.Addr(), redis.Config{}), store(t, server.Addr(), redis.Config{MaxAge: -1})
	require.NoError(t, s.Save(t.Context(), key("old"), storetest.Record(1)))
	require.NoError(t, s.Save(t.Context(), key("renewed"), storetest.Record(1)))
	require.NoError(t, s.Save(t.Context(), key("kept"), storetest.Record(1)))
	server.FastForward(30*24*time.Hour - time.Second)
	require.NoError(t, s.Save(t.Context(), key("renewed"), storetest.Record(2)))
	require.NoError(t, forever.Save(t.Context(), key("kept"), storetest.Record(2)))
	keys, err := s.Keys(t.Context())
	require.NoError(t, err)
	require.Len(t, keys, 3)
	server.FastForward(2 * time.Second)
	keys, err = s.Keys(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []messages.Key{key("renewed"), key("kept")}, keys)
	server.FastForward(300 * 24 * time.Hour)
	keys, err = s.Keys(t.Context())
	require.NoError(t, err)
	require.Equal(t, []messages.Key{key("kept")}, keys)
}

func TestSwappedRecordsExpire(t *testing.T) {
	server := miniredis.RunT(t)
	s, forever := store(t, server.Addr(), redis.Config{}), store(t, server.Addr(), redis.Config{MaxAge: -1})
	for from := range uint64(2) {
		for scope, s := range map[string]*redis.Store{"old": s, "kept": forever} {
			swapped, err := s.Swap(t.Context(), key(scope), from, &mcpbridge.Record{Version: from + 1})
			require.NoError(t, err)
			require.True(t, swapped)
		}
		server.FastForward(30*24*time.Hour - time.Second)
		keys, err := s.Keys(t.Context())
		require.NoError(t, err)
		require.Len(t, keys, 2)
	}
	server.FastForward(2 * time.Second)
	keys, err := s.Keys(t.Context())
	require.NoError(t, err)
	require.Equal(t, []messages.Key{key("kept")}, keys)
}

// lossy returns the address of a proxy to a server. It closes the connection in place of a response to EVAL, and counts these.
func lossy(t *testing.T, server string) (addr string, lost *atomic.Int64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	lost = new(atomic.Int64)
	var all sync.WaitGroup
	all.Go(func() {
		for client, err := l.Accept(); err == nil; client, err = l.Accept() {
			all.Go(func() { pass(client, server, lost) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return l.Addr().String(), lost
}

// pass passes on requests and responses, until there is a response to EVAL.
func pass(client net.Conn, addr string, lost *atomic.Int64) {
	defer client.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer server.Close()
	var evaluates atomic.Bool
	go func() {
		defer client.Close()
		response := make([]byte, 64<<10)
		for {
			n, err := server.Read(response)
			if err == nil && evaluates.Load() {
				lost.Add(1)
				return
			}
			if _, failed := client.Write(response[:n]); err != nil || failed != nil {
				return
			}
		}
	}()
	request := make([]byte, 64<<10)
	for {
		n, err := client.Read(request)
		evaluates.Store(bytes.Contains(request[:n], []byte("EVAL")))
		if _, failed := server.Write(request[:n]); err != nil || failed != nil {
			return
		}
	}
}

// The client sends other commands again. A second attempt would report that the record was not swapped.
func TestSwapWhoseResponseIsLostIsAnError(t *testing.T) {
	server := miniredis.RunT(t)
	addr, lost := lossy(t, server.Addr())
	all := []goredis.ClusterSlot{{End: 16383, Nodes: []goredis.ClusterNode{{Addr: addr}}}}
	slots := func(context.Context) ([]goredis.ClusterSlot, error) { return all, nil } // the server names its own address
	for n, s := range []*redis.Store{store(t, addr, redis.Config{}), clustered(t, goredis.ClusterOptions{ClusterSlots: slots})} {
		from := uint64(n)
		swapped, err := s.Swap(t.Context(), key("b"), from, &mcpbridge.Record{Version: from + 1})
		require.ErrorIs(t, err, io.EOF)
		require.False(t, swapped)
		require.EqualValues(t, n+1, lost.Load())
		r, err := s.Load(t.Context(), key("b"))
		require.NoError(t, err)
		require.Equal(t, from+1, r.Version)
	}
}

// Without a new version, a record that changes between the read and the write is read again.
func TestSwapAndSavesOfAVersion(t *testing.T) {
	server := miniredis.RunT(t)
	one, other := store(t, server.Addr(), redis.Config{}), store(t, server.Addr(), redis.Config{})
	for range 20 {
		require.NoError(t, one.Save(t.Context(), key("b"), storetest.Record(1)))
		var all sync.WaitGroup
		all.Go(func() {
			for n := range uint64(20) {
				if err := other.Save(t.Context(), key("b"), storetest.Record(n)); err != nil {
					t.Error(err)
				}
			}
		})
		swapped, err := one.Swap(t.Context(), key("b"), 0, &mcpbridge.Record{Version: 1})
		all.Wait()
		require.NoError(t, err)
		require.True(t, swapped)
	}
}

// operations are all of a store, by the name in their errors.
func operations(s *redis.Store) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"load a/b":   func(ctx context.Context) error { _, err := s.Load(ctx, key("b")); return err },
		"keys":       func(ctx context.Context) error { _, err := s.Keys(ctx); return err },
		"delete a/b": func(ctx context.Context) error { return s.Delete(ctx, key("b")) },
		"save a/b":   func(ctx context.Context) error { return s.Save(ctx, key("b"), storetest.Record(1)) },
		"swap a/b": func(ctx context.Context) error {
			_, err := s.Swap(ctx, key("b"), 0, &mcpbridge.Record{Version: 1})
			return err
		},
	}
}

func TestServerThatDoesNotAnswerEndsWithTheContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for name, do := range operations(store(t, l.Addr().String(), redis.Config{})) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := do(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		require.ErrorContains(t, err, "resume: "+name+": ")
		storetest.Hidden(t, err)
		cancel()

		ctx, cancel = context.WithCancel(t.Context()) // the client does not notice this by itself
		time.AfterFunc(10*time.Millisecond, cancel)
		require.ErrorIs(t, do(ctx), context.Canceled, name)
	}
}

func TestAnswersOfRedisAreNotQuoted(t *testing.T) {
	server := miniredis.RunT(t)
	s := store(t, server.Addr(), redis.Config{})
	for answer, want := range map[string]string{
		"ERR unknown command 'X', with args beginning with: '" + storetest.Secret + "'": "redis answered ERR",
		"NOPERM no permission for " + storetest.Secret:                                  "redis answered NOPERM",
		storetest.Secret: "redis answered an error",
	} {
		server.SetError(answer)
		for name, do := range operations(s) {
			err := do(t.Context())
			require.EqualError(t, err, "resume: "+name+": "+want)
			storetest.Hidden(t, err)
		}
	}
}

func TestStoreWorksAgainAfterAnOutage(t *testing.T) {
	server := miniredis.RunT(t)
	s := store(t, server.Addr(), redis.Config{})
	require.NoError(t, s.Save(t.Context(), key("b"), storetest.Record(1)))
	server.Close()
	for name, do := range operations(s) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		require.ErrorContains(t, do(ctx), "resume: "+name)
		cancel()
	}
	require.NoError(t, server.Restart())
	r, err := s.Load(t.Context(), key("b"))
	require.NoError(t, err)
	require.Equal(t, storetest.Record(1), r)
}

func TestStoreSaysWhereItsRecordsAre(t *testing.T) {
	s := store(t, "127.0.0.1:1", redis.Config{})
	require.Equal(t, "sessions in redis, prefix mcpactor:sessions:", s.String())
	require.Equal(t, s.String(), fmt.Sprintf("%#v", s))
}
