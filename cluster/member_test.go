package cluster_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/cluster/internal/view"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

// counters is an MCP server with a counter for each MCP session. It counts the sessions that it
// has opened for each scope.
type counters struct {
	url  string
	mu   sync.Mutex
	open map[string]int  // by scope
	live map[string]bool // the sessions that are open, by their ids

	waiting, proceed chan struct{} // of the tool "wait"
}

// left returns how many sessions are open.
func (s *counters) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live)
}

func newCounters(t *testing.T) *counters {
	s := &counters{open: map[string]int{}, live: map[string]bool{}, waiting: make(chan struct{}), proceed: make(chan struct{})}
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		var count atomic.Int64
		server := mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1"}, nil)
		mcp.AddTool(server, &mcp.Tool{Name: "add"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(count.Add(1))}}}, nil, nil
		})
		mcp.AddTool(server, &mcp.Tool{Name: "wait"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			s.waiting <- struct{}{}
			<-s.proceed
			return &mcp.CallToolResult{}, nil, nil
		})
		return server
	}, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			s.mu.Lock()
			delete(s.live, r.Header.Get("Mcp-Session-Id"))
			s.mu.Unlock()
		}
		if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" {
			defer func() {
				if id := w.Header().Get("Mcp-Session-Id"); id != "" {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.open[r.Header.Get("Scope")]++
					s.live[id] = true
				}
			}()
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// sessions returns how many sessions were opened for a scope.
func (s *counters) sessions(scope string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[scope]
}

// start starts a member, which is stopped at the end of the test.
func (s *counters) start(t *testing.T, cfg cluster.Config) *cluster.Member {
	t.Helper()
	cfg.Supervisor.Servers = []supervisor.Server{{Name: "counter", URL: s.url, PerKey: func(_ context.Context, key messages.Key) (supervisor.Server, error) {
		return supervisor.Server{URL: s.url, Headers: map[string]string{"Scope": key.Scope}}, nil
	}}}
	return startMember(t, cfg)
}

// startMember starts a member with an actor system of its own. It is stopped at the end of the test.
func startMember(t *testing.T, cfg cluster.Config) *cluster.Member {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	m, err := cluster.Start(ctx, actor.NewActorSystem(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		require.NoError(t, m.Stop(ctx))
	})
	return m
}

// startAll starts members at the same time, and waits until each knows all.
func (s *counters) startAll(t *testing.T, cfgs ...cluster.Config) []*cluster.Member {
	t.Helper()
	members := make([]*cluster.Member, len(cfgs))
	var wait sync.WaitGroup
	for i, cfg := range cfgs {
		wait.Go(func() { members[i] = s.start(t, cfg) })
	}
	wait.Wait()
	for _, m := range members {
		knows(t, m, len(members))
	}
	return members
}

// knows waits until a member knows as many members.
func knows(t *testing.T, m *cluster.Member, count int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(m.Members()) == count }, 20*time.Second, 10*time.Millisecond)
}

func call(t *testing.T, m *cluster.Member, scope string) *messages.ToolResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	result, err := m.Client().CallTool(ctx, "counter", scope, &mcp.CallToolParams{Name: "add"})
	require.NoError(t, err)
	return result
}

func text(r *messages.ToolResult) string { return r.Result.Content[0].(*mcp.TextContent).Text }

func inProcess(hub *cluster.InProcess, name string) cluster.Config {
	return cluster.Config{Member: name, InProcess: hub}
}

func TestConcurrentFirstCallsOfAllMembersOpenOneSessionForEachKey(t *testing.T) {
	s, hub := newCounters(t), cluster.NewInProcess()
	members := s.startAll(t, inProcess(hub, "a"), inProcess(hub, "b"), inProcess(hub, "c"))
	const scopes, rounds = 50, 2
	owners := sync.Map{}
	var wait sync.WaitGroup
	for i := range scopes {
		for _, m := range members {
			for range rounds {
				wait.Go(func() { owners.Store(call(t, m, fmt.Sprint(i)).Supervisor, true) })
			}
		}
	}
	wait.Wait()
	for i := range scopes {
		require.Equal(t, 1, s.sessions(fmt.Sprint(i)), "scope %d", i)
	}
	for i := range scopes {
		require.Equal(t, fmt.Sprint(len(members)*rounds+1), text(call(t, members[i%3], fmt.Sprint(i))))
	}
	snap, err := members[0].Client().Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, scopes, snap.Total)
	require.Len(t, snap.Members, 3)
	sum := 0
	for _, m := range snap.Members {
		require.True(t, m.Answered, m.Name)
		require.NotZero(t, m.Sessions, m.Name)
		sum += m.Sessions
	}
	require.Equal(t, scopes, sum)
	closed, err := members[1].Client().CloseAll(t.Context())
	require.NoError(t, err)
	require.Equal(t, scopes, closed.Sessions)
	require.Empty(t, closed.Unanswered)
}

func TestMemberThatLeavesHandsItsSessionsOver(t *testing.T) {
	s, hub, records := newCounters(t), cluster.NewInProcess(), new(resume.Memory)
	cfg := func(name string) cluster.Config {
		c := inProcess(hub, name)
		c.Supervisor.Store = records
		return c
	}
	members := s.startAll(t, cfg("a"), cfg("b"), cfg("c"))
	const scopes = 30
	of := map[string]bool{}
	for i := range scopes {
		of[call(t, members[i%3], fmt.Sprint(i)).Supervisor] = true
	}
	require.Len(t, of, 3)
	require.NoError(t, members[2].Stop(t.Context()))
	knows(t, members[0], 2)
	for i := range scopes {
		result := call(t, members[i%2], fmt.Sprint(i))
		require.Equal(t, "2", text(result), "the session has kept its state")
		require.EqualValues(t, 1, result.Generation)
		require.NotEqual(t, "c", result.Supervisor)
		require.Equal(t, 1, s.sessions(fmt.Sprint(i)))
	}
	s.start(t, cfg("d"))
	knows(t, members[0], 3)
	moved := 0
	for i := range scopes {
		result := call(t, members[i%2], fmt.Sprint(i))
		require.Equal(t, "3", text(result))
		if result.Supervisor == "d" {
			moved++
		}
	}
	require.NotZero(t, moved)
	_, err := members[2].Client().CallTool(t.Context(), "counter", "x", &mcp.CallToolParams{Name: "add"})
	require.ErrorIs(t, err, messages.CodeClosed)
}

func TestHostsOfAListFindEachOtherAndSpeakTLS(t *testing.T) {
	s, dir := newCounters(t), t.TempDir()
	ca := newAuthority(t, dir, "ca")
	hosts := []string{free(t), free(t), free(t)}
	var cfgs []cluster.Config
	for i, host := range hosts {
		cfgs = append(cfgs, cluster.Config{
			Member: fmt.Sprint("m", i), Listen: host, Hosts: hosts, Directory: dir, TLS: ca.issue(t, fmt.Sprint("m", i)),
		})
	}
	members := s.startAll(t, cfgs...)
	for i := range 20 {
		for _, m := range members {
			call(t, m, fmt.Sprint(i))
		}
	}

	// One without a certificate changes nothing.
	conn, err := grpc.NewClient(members[0].Members()[0].Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	require.Equal(t, codes.Unavailable, status.Code(conn.Invoke(t.Context(), "/no/method", &emptypb.Empty{}, &emptypb.Empty{})))
	for i := range 20 {
		call(t, members[i%3], fmt.Sprint(i))
	}
}

// Hosts that are stopped one after the other start again with what they have stored. The last one needs no other, and takes
// them up. One that has lost its log joins as a new one.
func TestHostsStartAgain(t *testing.T) {
	s, dir := newCounters(t), t.TempDir()
	hosts := []string{free(t), free(t), free(t)}
	var cfgs []cluster.Config
	for _, host := range hosts {
		cfgs = append(cfgs, cluster.Config{Member: host, Listen: host, Hosts: hosts, Directory: dir, Lease: time.Second})
	}
	members := s.startAll(t, cfgs...)
	for round := range 3 {
		call(t, members[0], "x")
		if round == 0 {
			require.NoError(t, members[1].Stop(t.Context()))
			call(t, members[0], "x")
			require.NoError(t, os.Remove(filepath.Join(dir, strings.ReplaceAll(hosts[1], ":", "_")+".log")))
			members[1] = s.start(t, cfgs[1])
			knows(t, members[0], 3)
			call(t, members[1], "x")
		}
		for _, m := range members {
			require.NoError(t, m.Stop(t.Context()))
		}
		members[2] = s.start(t, cfgs[2])
		call(t, members[2], "x")
		members[0], members[1] = s.start(t, cfgs[0]), s.start(t, cfgs[1])
		for _, m := range members {
			knows(t, m, 3)
		}
	}
}

// The last member closes all MCP sessions, also those that others have left to it.
func TestStopOfAllMembersLeavesNoSession(t *testing.T) {
	hosts, hub := []string{free(t), free(t), free(t)}, cluster.NewInProcess()
	for witness, configure := range map[string]func(c *cluster.Config, i int){
		"hosts": func(c *cluster.Config, i int) {
			c.Listen, c.Hosts, c.RestartedHostsJoinAnew = hosts[i], hosts, true
		},
		"in process": func(c *cluster.Config, _ int) { c.InProcess = hub },
	} {
		for _, atOnce := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, at once: %t", witness, atOnce), func(t *testing.T) {
				s, records := newCounters(t), new(resume.Memory)
				var cfgs []cluster.Config
				for i := range hosts {
					cfg := cluster.Config{Member: fmt.Sprint("m", i), Lease: time.Second, Supervisor: supervisor.Config{Store: records}}
					configure(&cfg, i)
					cfgs = append(cfgs, cfg)
				}
				members := s.startAll(t, cfgs...)
				for i := range 30 {
					call(t, members[i%3], fmt.Sprint(i))
				}
				require.Eventually(t, func() bool { return s.left() == 30 }, 10*time.Second, time.Millisecond)
				var wait sync.WaitGroup
				for _, m := range members {
					wait.Go(func() { require.NoError(t, m.Stop(t.Context())) })
					if !atOnce {
						wait.Wait()
					}
				}
				wait.Wait()
				require.Zero(t, s.left())
			})
		}
	}
}

// Neighbouring ports share the shards evenly.
func TestNeighbouringPortsShareTheShardsEvenly(t *testing.T) {
	var v view.View
	for _, host := range []string{"127.0.0.1:8091", "127.0.0.1:8092", "127.0.0.1:8093"} {
		v.Members = append(v.Members, view.Member{ID: host, Host: host})
	}
	counts, owners := map[string]int{}, v.Owners()
	for shard := range 4096 {
		owner, _ := owners.Of(shard)
		counts[owner.Host]++
	}
	for host, count := range counts {
		require.InDelta(t, 4096/3, count, 100, host)
	}
}

func TestMemberThatDoesNotFitDoesNotJoin(t *testing.T) {
	s, hub := newCounters(t), cluster.NewInProcess()
	a := s.start(t, inProcess(hub, "a"))
	for want, cfg := range map[string]cluster.Config{
		"the member a has 4096 shards": {Member: "b", Shards: 64},
		"has the same name":            {Member: "a"},
	} {
		cfg.InProcess = hub
		cfg.Supervisor.Servers = []supervisor.Server{{Name: "counter", URL: s.url}}
		_, err := cluster.Start(t.Context(), actor.NewActorSystem(), cfg)
		require.ErrorContains(t, err, want)
		knows(t, a, 1)
	}
	other := inProcess(hub, "a")
	other.Name = "other"
	b := s.start(t, other)
	require.Len(t, b.Members(), 1, "a member of another cluster")
	require.Equal(t, "1", text(call(t, a, "x")))
	require.Equal(t, "1", text(call(t, b, "x")))
}

func TestInvalidConfigurationsAreRefused(t *testing.T) {
	for want, cfg := range map[string]cluster.Config{
		"0 of them are set":            {},
		"2 of them are set":            {InProcess: cluster.NewInProcess(), Hosts: []string{"127.0.0.1:1"}},
		`hosts[0]: "x" is`:             {Hosts: []string{"x"}},
		"is not among them":            {Listen: "127.0.0.1:2", Hosts: []string{"127.0.0.1:1"}},
		"directory: is empty: a":       {Listen: "127.0.0.1:1", Hosts: []string{"127.0.0.1:1", "127.0.0.1:2"}},
		"there are two hosts":          {Listen: "127.0.0.1:1", Hosts: []string{"127.0.0.1:1", "127.0.0.1:2"}, RestartedHostsJoinAnew: true},
		`listen: "x" is not a host`:    {Listen: "x"},
		`advertise: "x" is not a host`: {Advertise: "x"},
		`listen: "x:http" is not`:      {Listen: "x:http"},
		`advertise: "x:0" is not a`:    {Advertise: "x:0"},
		`advertise: "a b:9" is not a`:  {Advertise: "a b:9"},
		`name: "a\nb" has a slash`:     {Name: "a\nb"},
		`etcd.endpoints[0]: ""`:        {Etcd: cluster.Etcd{Endpoints: []string{""}}},
		`etcd.endpoints[1]: "::junk"`:  {Etcd: cluster.Etcd{Endpoints: []string{"10.0.0.1:2379", "::junk"}}},
		"etcd.username, etcd.password": {Etcd: cluster.Etcd{Endpoints: []string{"http://127.0.0.1:1"}, Username: "u"}},
		`listen: "x:65536" is not`:     {Listen: "x:65536"},
		`but listen is ":1"`:           {Listen: ":1"},
		`but listen is "0.0.0.0:1"`:    {Listen: "0.0.0.0:1"},
		`advertise: "[::]:1" has no`:   {Advertise: "[::]:1"},
		`"x:1" is listed twice`:        {Hosts: []string{"x:1", "x:1"}},
		"shards: is -1":                {Shards: -1},
		"lease: is 1ms":                {Lease: time.Millisecond},
		`name: "a/b" has a slash`:      {Name: "a/b"},
		"tls.certFile, tls.keyFile: ":  {InProcess: cluster.NewInProcess(), TLS: &cluster.TLS{}},
		"servers: ":                    {InProcess: cluster.NewInProcess()},
	} {
		m, err := cluster.Start(t.Context(), actor.NewActorSystem(), cfg)
		require.ErrorContains(t, err, want)
		require.Nil(t, m)
	}
}

func TestMemberThatCannotJoinSaysWhy(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	servers := supervisor.Config{Servers: []supervisor.Server{{Name: "s", URL: "http://127.0.0.1:1"}}}
	for want, cfg := range map[string]cluster.Config{
		"cannot join: listen ": {Supervisor: servers, Listen: taken.Addr().String(), InProcess: cluster.NewInProcess()},
	} {
		m, err := cluster.Start(t.Context(), actor.NewActorSystem(), cfg)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "goroutine")
		require.Nil(t, m)
	}
}

// In the same actor system, and under the same name, a member can be started when the previous one has
// stopped, and after a Start that has failed.
func TestNameOfAStoppedMemberIsFree(t *testing.T) {
	s := newCounters(t)
	system := actor.NewActorSystem()
	cfg := inProcess(cluster.NewInProcess(), "a")
	cfg.Supervisor.Servers = []supervisor.Server{{Name: "counter", URL: s.url}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	waits := cfg
	waits.InProcess, waits.Listen, waits.RestartedHostsJoinAnew = nil, free(t), true
	waits.Hosts = []string{waits.Listen, "127.0.0.1:1", "127.0.0.1:2"}
	_, err := cluster.Start(ctx, system, waits)
	require.ErrorContains(t, err, "the member has not joined")

	var previous *cluster.Member
	for range 2 {
		m, err := cluster.Start(t.Context(), system, cfg)
		require.NoError(t, err)
		call(t, m, "x")
		if previous != nil {
			_, err := previous.Client().Open(t.Context(), "counter", "x")
			require.ErrorIs(t, err, messages.CodeClosed)
			require.Empty(t, previous.Members())
		}
		require.NoError(t, m.Stop(t.Context()))
		require.NoError(t, m.Stop(t.Context()))
		previous = m
	}
}

func TestStopWhoseContextEndsDoesNotDelayTheNextOne(t *testing.T) {
	s := newCounters(t)
	hub := cluster.NewInProcess()
	members := s.startAll(t, inProcess(hub, "a"), inProcess(hub, "b"))
	leaving, other := members[0], members[1]
	scope := scopeOn(t, leaving, "counter")
	failed := make(chan error, 1)
	go func() {
		_, err := other.Client().CallTool(t.Context(), "counter", scope, &mcp.CallToolParams{Name: "wait"})
		failed <- err
	}()
	<-s.waiting
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_ = leaving.Stop(ctx) // the error depends on how fast the session closes
	select {
	case err := <-failed:
		require.ErrorIs(t, err, messages.CodeLost)
	case <-time.After(10 * time.Second):
		t.Fatal("the caller was not told")
	}
	close(s.proceed)
	began := time.Now()
	require.NoError(t, leaving.Stop(t.Context()))
	require.Less(t, time.Since(began), 10*time.Second)
}

// The error of a certificate that other members would refuse is that of the member that has it.
func TestCertificateMustBeValidForTheMember(t *testing.T) {
	dir := t.TempDir()
	ca, other := newAuthority(t, dir, "ca"), newAuthority(t, dir, "other")
	files := ca.issue(t, "m")
	servers := supervisor.Config{Servers: []supervisor.Server{{Name: "s", URL: "http://127.0.0.1:1"}}}
	for want, cfg := range map[string]cluster.Config{
		"tls.certFile: x509: certificate is not valid for":      {Advertise: "localhost:1", TLS: files},
		"tls.certFile: x509: certificate signed by unknown":     {TLS: &cluster.TLS{CertFile: files.CertFile, KeyFile: files.KeyFile, CAFile: other.file}},
		"tls.certFile: x509: certificate specifies an incompat": {TLS: ca.issue(t, "server", x509.ExtKeyUsageServerAuth)},
	} {
		cfg.Supervisor, cfg.InProcess = servers, cluster.NewInProcess()
		_, err := cluster.Start(t.Context(), actor.NewActorSystem(), cfg)
		require.ErrorContains(t, err, want)
	}
}

func TestMemberWithoutTLSIsRefusedOnOtherInterfaces(t *testing.T) {
	for want, cfg := range map[string]cluster.Config{
		`listen: "192.0.2.1:8090" is reached from other machines`: {Listen: "192.0.2.1:8090"},
		`listen: "0.0.0.0:8090" is reached from other machines`:   {Listen: "0.0.0.0:8090", Advertise: "127.0.0.1:8090"},
		`advertise: "192.0.2.1:1" is reached from other machines`: {Advertise: "192.0.2.1:1"},
	} {
		cfg.InProcess = cluster.NewInProcess()
		cfg.Supervisor.Servers = []supervisor.Server{{Name: "s", URL: "http://127.0.0.1:1"}}
		_, err := cluster.Start(t.Context(), actor.NewActorSystem(), cfg)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "Config.TLS")
	}
}

// The members get certificates of a new authority while they run. A member that has only these can join them.
func TestCertificatesAreReadAgainWhenTheyChange(t *testing.T) {
	s := newCounters(t)
	hub, dir := cluster.NewInProcess(), t.TempDir()
	ca := newAuthority(t, dir, "ca")
	start := func(name string) *cluster.Member {
		cfg := inProcess(hub, name)
		cfg.Supervisor.Servers, cfg.TLS = []supervisor.Server{{Name: "counter", URL: s.url}}, ca.issue(t, name)
		m, err := cluster.Start(t.Context(), actor.NewActorSystem(), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { m.Stop(context.Background()) })
		return m
	}
	first := start("a")
	ca = newAuthority(t, dir, "ca") // in the same files
	ca.issue(t, "a")
	second := start("b")
	require.Eventually(t, func() bool {
		return len(heard(first)) == 2 && len(heard(second)) == 2
	}, 20*time.Second, 10*time.Millisecond)
	on := map[string]bool{}
	for i := range 20 {
		res, err := second.Client().CallTool(t.Context(), "counter", fmt.Sprint("scope", i), &mcp.CallToolParams{Name: "add"})
		require.NoError(t, err)
		on[res.Supervisor] = true
	}
	require.Len(t, on, 2)
}

// heard returns the names of the members that a member has heard.
func heard(m *cluster.Member) (names []string) {
	for _, one := range m.Members() {
		if one.Answered && one.Name != one.Address {
			names = append(names, one.Name)
		}
	}
	return names
}

func TestMisuseIsRefused(t *testing.T) {
	s := newCounters(t)
	cfg := inProcess(cluster.NewInProcess(), "a")
	cfg.Supervisor.Servers = []supervisor.Server{{Name: "counter", URL: s.url}}
	//nolint:staticcheck // what a user may do
	_, err := cluster.Start(nil, actor.NewActorSystem(), cfg)
	require.ErrorContains(t, err, "the context is nil")
	_, err = cluster.Start(t.Context(), nil, cfg)
	require.ErrorContains(t, err, "system: is nil")
	cfg.Member = "a\n"
	_, err = cluster.Start(t.Context(), actor.NewActorSystem(), cfg)
	require.ErrorContains(t, err, `with member "a\n" as its name`)
	m := s.start(t, inProcess(cluster.NewInProcess(), "a"))
	//nolint:staticcheck // what a user may do
	require.ErrorContains(t, m.Stop(nil), "the context is nil")
	require.Equal(t, "1", text(call(t, m, "x")))
}

func TestNoEventIsHandledAfterCancel(t *testing.T) {
	s := newCounters(t)
	m := s.start(t, inProcess(cluster.NewInProcess(), "a"))
	begun, canceled := make(chan struct{}), make(chan struct{})
	handled := make(chan messages.Event, 100)
	cancel := m.Subscribe(func(e messages.Event) {
		handled <- e
		if len(handled) == 1 {
			close(begun)
			<-canceled
		}
	})
	defer cancel()
	call(t, m, "x")
	<-begun
	call(t, m, "y")
	cancel()
	close(canceled)
	call(t, m, "z")
	require.Len(t, handled, 1)
}

func TestFirstOfThreeHostsWaitsForTheOthers(t *testing.T) {
	hosts := []string{free(t), "127.0.0.1:2", "127.0.0.1:3"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines := make(logLines, 1000)
	go func() {
		defer cancel()
		for line := range lines {
			if strings.Contains(line, `"message":"member waits"`) && strings.Contains(line, "not heard yet: 127.0.0.1:2, 127.0.0.1:3") {
				return
			}
		}
	}()
	_, err := cluster.Start(ctx, actor.NewActorSystem(), cluster.Config{
		Supervisor: supervisor.Config{Servers: []supervisor.Server{{Name: "s", URL: "http://127.0.0.1:1"}}, Logger: zerolog.New(lines)},
		Listen:     hosts[0], Hosts: hosts, Directory: t.TempDir(),
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "not heard yet: 127.0.0.1:2, 127.0.0.1:3")
}

func TestStartEndsWithItsContextWhileEtcdIsSilent(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	cfg := cluster.Config{Listen: free(t), Etcd: cluster.Etcd{Endpoints: []string{"http://" + silent.Addr().String()}}}
	cfg.Supervisor.Servers = []supervisor.Server{{Name: "counter", URL: "http://127.0.0.1:1"}}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	m, err := cluster.Start(ctx, actor.NewActorSystem(), cfg)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Nil(t, m)
	require.Less(t, time.Since(began), 5*time.Second)
	again, err := net.Listen("tcp", cfg.Listen)
	require.NoError(t, err, "the port is free again")
	require.NoError(t, again.Close())
}

// logLines are the lines of a log, without those that nobody has room for.
type logLines chan string

func (l logLines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default:
	}
	return len(line), nil
}

// free returns a free address of loopback.
func free(t *testing.T) string {
	addr, err := clusterapi.FreeAddr("127.0.0.1")
	require.NoError(t, err)
	return addr
}

// authority signs certificates.
type authority struct {
	dir, file string
	cert      *x509.Certificate
	key       *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir, name string) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	a := &authority{dir, filepath.Join(dir, name+".pem"), cert, key}
	write(t, a.file, "CERTIFICATE", der)
	return a
}

// issue returns the files of a member. Without usages, its certificate has those that members need.
func (a *authority) issue(t *testing.T, name string, usages ...x509.ExtKeyUsage) *cluster.TLS {
	if usages == nil {
		usages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usages,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	encoded, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	files := &cluster.TLS{CertFile: filepath.Join(a.dir, name+".pem"), KeyFile: filepath.Join(a.dir, name+".key"), CAFile: a.file}
	write(t, files.CertFile, "CERTIFICATE", der)
	write(t, files.KeyFile, "EC PRIVATE KEY", encoded)
	return files
}

func write(t *testing.T, file, kind string, der []byte) {
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
