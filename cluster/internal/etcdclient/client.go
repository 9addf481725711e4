// Package etcdclient has a client of etcd that does not return to a server that does not answer.
package etcdclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

const (
	// pingAfter is after how long without a word of the server it is asked for one. gRPC asks no more often.
	pingAfter = 10 * time.Second
	// pingFor is how long a server may take to answer that, and on Linux also its system to acknowledge anything, until the
	// connection is replaced. It leaves time to renew a lease on the next one, and is less than a supervisor waits for a record:
	// otherwise a member whose connection a firewall has forgotten would open a new session in place of the one that the store knows.
	pingFor = time.Second
	// reconnect bounds the time between two attempts to connect. The default of gRPC is two minutes: members would be
	// fenced, and stores not work, long after an outage.
	reconnect = 500 * time.Millisecond
)

// Client asks one server of etcd, until that does not answer, and then the next one. By itself, a client takes turns: a server that
// accepts requests and answers none, because it has lost the other servers or its disk hangs, would get its share of all requests.
// Its methods may be called from any goroutine.
type Client struct {
	*clientv3.Client
	servers []string
	current atomic.Uint32 // the index of the one that is asked, and a multiple of their number
}

// New returns a client, which begins with a random server. An attempt to connect may take as long as connect. The client logs
// nothing: the logger of etcd would write to stderr.
func New(cfg clientv3.Config, connect time.Duration) (*Client, error) {
	cfg.DialKeepAliveTime, cfg.DialKeepAliveTimeout, cfg.Logger = pingAfter, pingFor, zap.NewNop()
	cfg.DialOptions = []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: reconnect / 10, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnect},
		MinConnectTimeout: connect,
	})}
	client, err := clientv3.New(cfg) // with all servers: any of them may accept the password
	if err != nil {
		return nil, err
	}
	c := &Client{Client: client, servers: slices.Clone(cfg.Endpoints)}
	rand.Shuffle(len(c.servers), func(i, j int) { c.servers[i], c.servers[j] = c.servers[j], c.servers[i] })
	client.SetEndpoints(c.servers[0])
	return c, nil
}

// Of returns a client that asks the servers as another one does.
func Of(client *clientv3.Client) *Client { return &Client{Client: client} }

// Do does requests at one server after the other, and gives each of them a time, until one of them has done the requests, or ctx
// ends. It asks each server once. A single server has the time that ctx has.
func (c *Client) Do(ctx context.Context, each time.Duration, requests func(context.Context) error) (err error) {
	if len(c.servers) < 2 {
		return requests(ctx)
	}
	for range c.servers {
		server := c.current.Load()
		one, cancel := context.WithTimeout(ctx, each)
		err = requests(one)
		cancel()
		if err == nil || errors.Is(ctx.Err(), context.Canceled) {
			return err
		}
		if next := server + 1; c.current.CompareAndSwap(server, next) { // once for all that have failed there
			c.SetEndpoints(c.servers[int(next)%len(c.servers)])
		}
		if end, ends := ctx.Deadline(); ends && time.Until(end) < each/4 { // there is no time for another one
			return err
		}
	}
	return err
}
