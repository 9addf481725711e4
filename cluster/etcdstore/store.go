// Package etcdstore stores what is needed to resume sessions in etcd. The programs that use the same
// servers and prefix share their records: when a session moves to another process, that process
// resumes it.
//
// The value of a record is JSON. Its name in etcd is the prefix, the name of the MCP server and the
// scope, escaped as in a URL: /mcpactor/sessions/browser/conversation-1.
//
// # Secrets
//
// A record has no credentials, but a session id, together with its cookies, may be enough to use
// the session. Whoever can read the prefix in etcd, its data directory or its backups has
// these. For this reason:
//
//   - Connect with TLS, and let etcd ask for a client's certificate or a password.
//   - Give the user of the store a role of etcd with readwrite permission for the prefix, and nobody
//     else a role with this prefix.
//   - A deleted record stays in etcd's history until it is compacted, and in the data file until it
//     is defragmented.
//
// Records are not encrypted by the store; those of logins are by login.Shared. No error and no printed value contains a session id.
//
// # Writes of two processes
//
// The last record saved counts. The store does not know which process owns a session: the
// supervisor saves the sessions that it has, and in a cluster each key has one owner at a time.
// [Store.Swap] is for records that several processes change: of the swaps from one version, one
// succeeds.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mcpactor/mcpactor/cluster/internal/etcdclient"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// pageSize is how many keys one request of Keys asks for.
const pageSize = 1000

// turnAfter is how long one of several servers may take for an operation, until the next one is asked. It is less than half
// of the time that a supervisor waits for a record.
const turnAfter = 900 * time.Millisecond

// Store is a store in etcd, for any number of processes. Once Save has returned, the record is
// on a majority of the etcd servers.
//
// While the servers cannot be reached, operations fail when their context ends, or earlier.
// Later ones work again.
type Store struct {
	cfg    Config
	client *etcdclient.Client
	leases *leases
	closed atomic.Bool
}

var _ mcpbridge.Swapper = (*Store)(nil)

// Open returns a store. With a password it fails if the servers do not accept it, or do not
// answer within DialTimeout. Otherwise it does not wait for the servers. Close the store after
// use.
func Open(cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("resume: open etcd: %w", err)
	}
	client := etcdclient.Of(cfg.Client)
	if cfg.Client == nil {
		var err error
		client, err = etcdclient.New(clientv3.Config{
			Endpoints: cfg.Endpoints, TLS: cfg.TLS, Username: cfg.Username, Password: cfg.Password, DialTimeout: cfg.DialTimeout,
		}, cfg.DialTimeout)
		if err != nil {
			return nil, fmt.Errorf("resume: open etcd: %w", err)
		}
	}
	cfg.Password = ""
	return &Store{cfg: cfg, client: client, leases: newLeases(client.Client, cfg.MaxAge)}, nil
}

// Load returns the record of a key, or nil if there is none. It fails with resume.ErrGarbage
// if the record cannot be read.
func (s *Store) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	var got *clientv3.GetResponse
	err := s.do(ctx, func(ctx context.Context) (err error) {
		got, err = s.client.Get(ctx, s.name(key))
		return err
	})
	var record *mcpbridge.Record
	if err == nil && len(got.Kvs) > 0 {
		record, err = clusterapi.DecodeRecord(got.Kvs[0].Value)
	}
	return record, clusterapi.StoreFailed(ctx, "load", key, err)
}

// Save replaces the record of a key. If ctx ends during the write, the record may be saved all
// the same.
func (s *Store) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	value, err := clusterapi.EncodeRecord(record, time.Now())
	if err == nil {
		err = s.do(ctx, func(ctx context.Context) error {
			return s.leases.put(ctx, s.name(key), string(value), func(put clientv3.Op) error {
				_, err := s.client.Client.Do(ctx, put)
				return err
			})
		})
	}
	return clusterapi.StoreFailed(ctx, "save", key, err)
}

// Delete deletes the record of a key, if there is one. If ctx ends during the write, the record
// may be deleted all the same.
func (s *Store) Delete(ctx context.Context, key messages.Key) error {
	err := s.do(ctx, func(ctx context.Context) error {
		_, err := s.client.Delete(ctx, s.name(key))
		return err
	})
	return clusterapi.StoreFailed(ctx, "delete", key, err)
}

// Keys returns the keys that have records. It asks for them in pages. A key that is saved or
// deleted meanwhile may be missing or not. Names under the prefix that are not those of records
// are left out.
func (s *Store) Keys(ctx context.Context) ([]messages.Key, error) {
	var keys []messages.Key
	end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(s.cfg.Prefix))
	for from, more := s.cfg.Prefix, true; more; {
		var page *clientv3.GetResponse
		err := s.do(ctx, func(ctx context.Context) (err error) {
			page, err = s.client.Get(ctx, from, end, clientv3.WithKeysOnly(), clientv3.WithLimit(pageSize))
			return err
		})
		if err != nil {
			return nil, clusterapi.StoreFailedAll(ctx, "keys", err)
		}
		for _, kv := range page.Kvs {
			from = string(kv.Key) + "\x00" // the next name that is possible
			if key, ok := clusterapi.KeyOfRecord(string(kv.Key[len(s.cfg.Prefix):])); ok {
				keys = append(keys, key)
			}
		}
		more = page.More
	}
	return keys, nil
}

// Close closes the store, and its client unless that is the caller's. Operations that have begun, and
// all later ones, fail with resume.ErrClosed; with the caller's client, those that have begun
// are finished. Further calls do nothing.
func (s *Store) Close() error {
	if s.closed.Swap(true) || s.cfg.Client != nil {
		return nil
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("resume: close etcd: %w", err)
	}
	return nil
}

// String returns where the records are.
func (s *Store) String() string { return "sessions in " + s.cfg.String() }

// Format writes String for every verb: some verbs would print the client with its credentials.
func (s *Store) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) } //nolint:errcheck // fmt has nowhere to report it

func (s *Store) name(key messages.Key) string { return s.cfg.Prefix + clusterapi.NameOfRecord(key) }

// do performs an operation, unless the store is closed or ctx has ended. The error says whether that
// was the reason for a failure.
func (s *Store) do(ctx context.Context, operation func(context.Context) error) error {
	if s.closed.Load() {
		return clusterapi.ErrStoreClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := s.client.Do(ctx, turnAfter, operation)
	switch {
	case err == nil:
		return nil
	case s.closed.Load():
		return clusterapi.ErrStoreClosed
	case status.Code(err) == codes.DeadlineExceeded && !errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err) // the server's clock was first
	}
	return err
}
