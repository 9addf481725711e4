package member

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/cluster/history"
	"github.com/mcpactor/mcpactor/tests/cluster/mcpserver"
)

const (
	// sessions is the cap of a member.
	sessions = 1024
	// protocol is the newest version of MCP that has sessions over HTTP.
	protocol = "2025-11-25"
	// drain is how long running calls may take when their session moves.
	drain = 10 * time.Second
)

// join starts a member, whose acts are reported. The store may be nil.
func join(ctx context.Context, system *actor.ActorSystem, cfg *Config, client *http.Client, store mcpbridge.Store, acted func(*history.Act), log zerolog.Logger) (*cluster.Member, error) {
	own := cluster.Config{
		Supervisor: dial.Wrap(supervisor.Config{
			Servers: []supervisor.Server{server(cfg, client)}, MaxSessions: sessions, DrainTimeout: drain,
			Store: store, Logger: log,
		}, func(d dial.Dialer) dial.Dialer { return &dialer{Dialer: d, member: cfg.Name, acted: acted} }),
		Name: "test", Member: cfg.Name, Listen: cfg.Listen, Advertise: cfg.Advertise,
		Lease: cfg.Lease,
	}
	if cfg.Certificate != "" {
		own.TLS = &cluster.TLS{CertFile: cfg.Certificate, KeyFile: cfg.Key, CAFile: cfg.CA}
	}
	if cfg.Witness == "etcd" {
		own.Etcd = cluster.Etcd{Endpoints: []string{cfg.Etcd}, Prefix: "/test"}
	} else {
		own.Hosts, own.Directory = cfg.Hosts, cfg.Directory
	}
	return cluster.Start(ctx, system, own)
}

// newClient returns a client whose requests say which member sends them. The name of the
// member is not among the headers of the server, because another member resumes a session
// only if the headers are the same.
func newClient(name string) *http.Client {
	return &http.Client{Transport: &marked{name, &http.Transport{MaxIdleConnsPerHost: sessions}}}
}

// server returns the MCP server. Each request says which scope it is for.
func server(cfg *Config, client *http.Client) supervisor.Server {
	one := supervisor.Server{Name: ServerName, URL: cfg.URL, HTTPClient: client, ProtocolVersion: protocol, InsecureCredentials: true}
	one.PerKey = func(_ context.Context, key messages.Key) (supervisor.Server, error) {
		its := one
		its.Headers = map[string]string{mcpserver.ScopeHeader: key.Scope}
		return its, nil
	}
	return one
}

// marked adds the name of a member to each request.
type marked struct {
	name string
	base *http.Transport
}

func (m *marked) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(mcpserver.MemberHeader, m.name)
	return m.base.RoundTrip(r)
}

// view returns what a member knows of the cluster.
func view(m *cluster.Member) *View {
	v := &View{At: time.Now()}
	for _, one := range m.Members() {
		if one.Self {
			v.ID, v.Serving = one.ID, one.Answered
		}
		if !one.Leaving {
			v.Members = append(v.Members, one.Name)
		}
	}
	slices.Sort(v.Members)
	return v
}

// same reports whether nothing has changed between two views.
func same(a, b *View) bool {
	return a != nil && a.ID == b.ID && a.Serving == b.Serving && slices.Equal(a.Members, b.Members)
}

// CloseIdleConnections is for [http.Client.CloseIdleConnections].
func (m *marked) CloseIdleConnections() { m.base.CloseIdleConnections() }
