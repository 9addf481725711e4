// Package redis stores what is needed to resume sessions in Redis, or in a server that speaks its
// protocol, such as Valkey. The programs that use the same database and prefix share their
// records: when a session moves to another process, that process resumes it.
//
// It is a module of its own, so that other programs do not depend on the client of Redis.
//
// The value of a record is JSON. Its name in Redis is the prefix, the name of the MCP server and the
// scope, escaped as in a URL: mcpactor:sessions:browser/conversation-1.
//
// # Durability
//
// Redis replicates asynchronously. After a failover or a crash the last records may be missing or
// old: such a session is opened anew, and its generation may be one that was used before.
// Package cluster/etcdstore does not lose records in this way. Set maxmemory-policy to noeviction, or
// Redis may delete records when its memory is full.
//
// # Secrets
//
// A record has no credentials, but a session id, together with its cookies, may be enough to use
// the session. Whoever can read the database, its files or its backups has these. For this
// reason connect with TLS, and with a user of Redis whose access control list has the names with
// the prefix only. The store uses the commands GET, SET, DEL, SCAN and, for Swap, EVAL, and the client
// those that set up a connection. SCAN shows the names of all keys to a user, and these contain scopes.
//
// Records are not encrypted by the store; those of logins are by login.Shared. No error and no printed value contains a session id.
//
// # Writes of two processes
//
// The last record saved counts. The store does not know which process owns a session: the
// supervisor saves the sessions that it has, and in a cluster each key has one owner at a time.
// [Store.Swap] is for records that several processes change: of the swaps from one version, one
// succeeds, on a Redis Cluster as well. A failover that loses the last records may undo it.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mcpactor/mcpactor/internal/entry"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// pageSize is how many keys a request of Keys makes Redis look at.
const pageSize = 1000

// defaultPrefix is the default of [Config.Prefix].
const defaultPrefix = "mcpactor:sessions:"

// Config is the configuration of a [Store]. Its zero value is useful.
type Config struct {
	// Prefix begins the names of all records. Programs with the same prefix share their
	// sessions. Defaults to "mcpactor:sessions:".
	Prefix string
	// MaxAge is how long a record is kept after it was last saved. Raise it if servers keep
	// sessions for longer. Defaults to 30 days; -1 keeps all records.
	MaxAge time.Duration
}

// Store is a store in Redis, for any number of processes.
//
// While Redis cannot be reached, operations fail when their context ends, or earlier. Later
// ones work again.
type Store struct {
	client redis.UniversalClient
	cfg    Config
}

var _ mcpbridge.Swapper = (*Store)(nil)

// New returns a store with a client, which is a [redis.Client] (also one of sentinels) or a
// [redis.ClusterClient]. It does not wait for Redis. The caller closes the client, after the last
// use of the store. A cluster client that reads from replicas is refused, because these may have
// old records. For the same reason a client of sentinels must not have ReplicaOnly.
func New(client redis.UniversalClient, cfg Config) (*Store, error) {
	if cfg.Prefix == "" {
		cfg.Prefix = defaultPrefix
	}
	switch cfg.MaxAge {
	case 0:
		cfg.MaxAge = entry.DefaultMaxAge
	case entry.Forever:
		cfg.MaxAge = 0 // as the client has it
	default:
		if cfg.MaxAge < time.Millisecond {
			return nil, fmt.Errorf("resume: new redis store: maxAge: %v is below a millisecond: -1 keeps all records", cfg.MaxAge)
		}
	}
	if err := check(client); err != nil {
		return nil, fmt.Errorf("resume: new redis store: client: %w", err)
	}
	return &Store{client, cfg}, nil
}

// check returns an error for a client that the store cannot use.
func check(client redis.UniversalClient) error {
	switch c := client.(type) {
	case *redis.Client:
		if c != nil {
			return nil
		}
	case *redis.ClusterClient:
		if c == nil {
			break
		}
		if o := c.Options(); o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
			return errors.New("it reads from replicas, which may have old records: turn this off")
		}
		return nil
	}
	return fmt.Errorf("it is a %T: use a *redis.Client or a *redis.ClusterClient", client)
}

// Load returns the record of a key, or nil if there is none. It fails with resume.ErrGarbage
// if the record cannot be read.
func (s *Store) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	value, err := do(ctx, func() ([]byte, error) { return s.client.Get(ctx, s.name(key)).Bytes() })
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, entry.Failed(ctx, "load", key, withoutText(err))
	}
	record, err := entry.Decode(value)
	return record, entry.Failed(ctx, "load", key, err)
}

// Save replaces the record of a key. If ctx ends during the write, the record may be saved all
// the same.
func (s *Store) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	value, err := entry.Encode(record, time.Now())
	if err == nil {
		_, err = do(ctx, func() (string, error) { return s.client.Set(ctx, s.name(key), value, s.cfg.MaxAge).Result() })
	}
	return entry.Failed(ctx, "save", key, withoutText(err))
}

// Swap replaces the record of a key if it is of the version from, and reports whether it was. If it returns an error, the record may
// be saved all the same. It fails with resume.ErrGarbage if the record in place cannot be read.
func (s *Store) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (bool, error) {
	value, err := entry.EncodeSwap(record, from, time.Now())
	if err != nil {
		return false, entry.Failed(ctx, "swap", key, err)
	}
	swapped, err := do(ctx, func() (bool, error) { return s.swap(ctx, s.name(key), from, value) })
	return swapped, entry.Failed(ctx, "swap", key, withoutText(err))
}

// swap reads the value of a name until it has another version, or is replaced as it was read.
func (s *Store) swap(ctx context.Context, name string, from uint64, value []byte) (bool, error) {
	for {
		current, err := s.client.Get(ctx, name).Result()
		none := errors.Is(err, redis.Nil)
		if err != nil && !none {
			return false, err
		}
		if is, err := entry.HasVersion([]byte(current), !none, from); err != nil || !is {
			return false, err
		}
		if done, err := s.replace(ctx, name, current, value); err != nil || done {
			return done, err
		}
	}
}

// replaceScript replaces a value, if it is as it was read. An empty one is none: entries are not empty.
const replaceScript = `if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) elseif ARGV[3] == '0' then redis.call('SET', KEYS[1], ARGV[2]) else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1`

// replace runs the script, and reports whether it has replaced the value.
func (s *Store) replace(ctx context.Context, name, current string, value []byte) (bool, error) {
	script := once{redis.NewCmd(ctx, "EVAL", replaceScript, 1, name, current, value, s.cfg.MaxAge.Milliseconds())}
	script.SetFirstKeyPos(3) // of name: a cluster client chooses the server by it
	if err := s.client.Process(ctx, script); err != nil {
		return false, err
	}
	return script.Bool()
}

// once is a command that the client does not send again after an error: the first attempt may have replaced the value, and the second
// one would report that it has not.
type once struct{ *redis.Cmd }

// NoRetry returns true.
func (once) NoRetry() bool { return true }

// Delete deletes the record of a key, if there is one. If ctx ends during the write, the record
// may be deleted all the same.
func (s *Store) Delete(ctx context.Context, key messages.Key) error {
	_, err := do(ctx, func() (int64, error) { return s.client.Del(ctx, s.name(key)).Result() })
	return entry.Failed(ctx, "delete", key, withoutText(err))
}

// Keys returns the keys that have records. It looks at all keys of the database with SCAN, in pages.
// A key that is saved or deleted meanwhile may be missing or not. Names with the prefix that
// are not those of records are left out.
func (s *Store) Keys(ctx context.Context) ([]messages.Key, error) {
	keys, err := do(ctx, func() ([]messages.Key, error) {
		if cluster, ok := s.client.(*redis.ClusterClient); ok {
			return s.scanAll(ctx, cluster)
		}
		found := map[messages.Key]bool{}
		err := s.scan(ctx, s.client, func(key messages.Key) { found[key] = true })
		return slices.Collect(maps.Keys(found)), err
	})
	if err != nil {
		return nil, entry.FailedAll(ctx, "keys", withoutText(err))
	}
	return keys, nil
}

// scanAll returns the keys on all masters.
func (s *Store) scanAll(ctx context.Context, cluster *redis.ClusterClient) ([]messages.Key, error) {
	var mu sync.Mutex
	found := map[messages.Key]bool{}
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		return s.scan(ctx, master, func(key messages.Key) {
			mu.Lock()
			defer mu.Unlock()
			found[key] = true
		})
	})
	return slices.Collect(maps.Keys(found)), err
}

// scan calls a function for each key of one server, possibly more than once.
func (s *Store) scan(ctx context.Context, server redis.Cmdable, each func(messages.Key)) error {
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		names, next, err := server.Scan(ctx, cursor, literally.Replace(s.cfg.Prefix)+"*", pageSize).Result()
		if err != nil {
			return err
		}
		for _, name := range names {
			if key, ok := entry.KeyOf(strings.TrimPrefix(name, s.cfg.Prefix)); ok {
				each(key)
			}
		}
		cursor = next
	}
	return nil
}

// literally escapes the characters that have a meaning in a pattern of Redis.
var literally = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// String returns where the records are.
func (s *Store) String() string { return "sessions in redis, prefix " + s.cfg.Prefix }

// Format writes String for every verb: some verbs would print the client with its credentials.
func (s *Store) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) } //nolint:errcheck // fmt has nowhere to report it

func (s *Store) name(key messages.Key) string { return s.cfg.Prefix + entry.Name(key) }

// do performs an operation, and returns when it or ctx has ended. The client notices the end of
// a context only between its reads and writes, so an operation may run on until its timeouts.
func do[T any](ctx context.Context, operation func() (T, error)) (result T, err error) {
	if err := ctx.Err(); err != nil {
		return result, err
	}
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := operation()
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		return result, ctx.Err()
	}
}

// withoutText drops the text of an error that Redis has sent, because it may quote the arguments of
// the command. Its first word is a code, such as NOAUTH or OOM.
func withoutText(err error) error {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return err
	}
	code, _, _ := strings.Cut(answer.Error(), " ")
	if code == "" || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		code = "an error"
	}
	return fmt.Errorf("redis answered %s", code)
}
