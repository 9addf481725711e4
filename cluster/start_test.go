package cluster_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/mesh"
	"github.com/mcpactor/mcpactor/cluster/internal/quorum"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

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
	hosts, file := []string{free(t), "127.0.0.1:2", "127.0.0.1:3"}, filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	servers := supervisor.Config{Servers: []supervisor.Server{{Name: "s", URL: "http://127.0.0.1:1"}}}
	for want, cfg := range map[string]cluster.Config{
		"cluster: listen: ":        {Supervisor: servers, Listen: taken.Addr().String(), InProcess: cluster.NewInProcess()},
		file + ": not a directory": {Supervisor: servers, Listen: hosts[0], Hosts: hosts, Directory: file},
	} {
		m, err := cluster.Start(t.Context(), actor.NewActorSystem(), cfg)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "goroutine")
		require.Nil(t, m)
	}
}

// A second start of a host leaves its log as it is: it neither listens at the same address, nor opens a log that is open.
func TestSecondStartOfAHostIsRefused(t *testing.T) {
	cfg := cluster.Config{Listen: free(t), Directory: t.TempDir(), Supervisor: supervisor.Config{Servers: []supervisor.Server{{Name: "s", URL: "http://127.0.0.1:1"}}}}
	cfg.Hosts = []string{cfg.Listen}
	open, _, err := quorum.OpenLog(cfg.Directory, cfg.Listen)
	require.NoError(t, err)
	_, err = cluster.Start(t.Context(), actor.NewActorSystem(), cfg)
	require.ErrorContains(t, err, "another process uses "+cfg.Directory)
	require.NoError(t, open.Close())

	taken, err := net.Listen("tcp", cfg.Listen)
	require.NoError(t, err, "the port is free again")
	files, err := filepath.Glob(filepath.Join(cfg.Directory, "*.log"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	file, err := os.OpenFile(files[0], os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString("written by the host that runs, but not as a whole yet")
	require.NoError(t, errors.Join(err, file.Close()))
	written, err := os.ReadFile(files[0])
	require.NoError(t, err)
	_, err = cluster.Start(t.Context(), actor.NewActorSystem(), cfg)
	require.ErrorContains(t, err, "cluster: listen: ")
	left, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Equal(t, written, left)
	require.NoError(t, taken.Close())
	startMember(t, cfg)
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
	require.ErrorContains(t, err, `member "a\n": supervisor: name: has`)
	m := s.start(t, inProcess(cluster.NewInProcess(), "a"))
	//nolint:staticcheck // what a user may do
	require.ErrorContains(t, m.Stop(nil), "the context is nil")
	require.Equal(t, "1", text(call(t, m, "x")))
}

func TestFirstOfThreeHostsWaitsForTheOthers(t *testing.T) {
	hosts := []string{free(t), "127.0.0.1:2", "127.0.0.1:3"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines := make(logLines, 1000)
	go func() {
		defer cancel()
		for line := range lines {
			if strings.Contains(line, `"message":"member waits"`) && strings.Contains(line, "not heard: 127.0.0.1:2, 127.0.0.1:3") {
				return
			}
		}
	}()
	_, err := cluster.Start(ctx, actor.NewActorSystem(), cluster.Config{
		Supervisor: supervisor.Config{Servers: []supervisor.Server{{Name: "s", URL: "http://127.0.0.1:1"}}, Logger: zerolog.New(lines)},
		Listen:     hosts[0], Hosts: hosts, Directory: t.TempDir(),
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "not heard: 127.0.0.1:2, 127.0.0.1:3")
}

// All have stopped, one after the other, and all but the last one start again: they wait for that one, and say what to do
// if it is lost. That helps.
func TestHostsThatStoppedEarlierWaitForTheLastOne(t *testing.T) {
	s, hosts := newCounters(t), []string{free(t), free(t), free(t)}
	var cfgs []cluster.Config
	for _, host := range hosts {
		cfgs = append(cfgs, cluster.Config{Listen: host, Hosts: hosts, Directory: t.TempDir()})
	}
	for _, m := range s.startAll(t, cfgs...) {
		require.NoError(t, m.Stop(t.Context()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var wait sync.WaitGroup
	logs := []logLines{make(logLines, 1000), make(logLines, 1000)}
	for i, lines := range logs {
		cfg := cfgs[i]
		cfg.Supervisor = supervisor.Config{Servers: []supervisor.Server{{Name: "s", URL: s.url}}, Logger: zerolog.New(lines)}
		wait.Go(func() {
			_, err := cluster.Start(ctx, actor.NewActorSystem(), cfg)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
	for _, lines := range logs {
		const remedy = "stop all hosts, remove Config.Directory of each, and start them with Hosts that has only these"
		for line := ""; !strings.Contains(line, "or the one that stopped last; not heard: "+hosts[2]+"; ") || !strings.Contains(line, remedy); {
			select {
			case line = <-lines:
			case <-ctx.Done():
				require.Fail(t, "it does not say what it waits for")
			}
		}
	}
	cancel()
	wait.Wait()
	for i := range cfgs {
		require.NoError(t, os.RemoveAll(cfgs[i].Directory))
		cfgs[i].Hosts = hosts[:2]
	}
	members := s.startAll(t, cfgs[:2]...)
	require.Equal(t, "1", text(call(t, members[0], "a")))
	require.Equal(t, "2", text(call(t, members[1], "a")))
}

// A member that waits logs why it does not reach another host, and its error says so.
func TestMemberThatWaitsSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	ca, other := newAuthority(t, dir, "ca"), newAuthority(t, dir, "other")
	both := filepath.Join(dir, "both.pem")
	for _, a := range []*authority{ca, other} {
		pem, err := os.ReadFile(a.file)
		require.NoError(t, err)
		file, err := os.OpenFile(both, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = file.Write(pem)
		require.NoError(t, errors.Join(err, file.Close()))
	}
	secure := func(of *authority, name, authorities string) func(*cluster.Config) {
		return func(c *cluster.Config) {
			c.TLS = of.issue(t, name)
			c.TLS.CAFile = authorities
		}
	}
	for name, row := range map[string]struct {
		own, peer func(*cluster.Config)
		version   uint32 // of the peer
		want      string
	}{
		"nobody listens":   {want: "connection refused"},
		"another name":     {peer: func(c *cluster.Config) { c.Name = "x" }, want: "it refuses this member: it has another Config.Name than "},
		"it is not listed": {peer: func(c *cluster.Config) { c.Hosts = []string{c.Listen, "127.0.0.1:2"} }, want: `or does not list 127.0.0.1:`},
		"another order": {
			own:  func(c *cluster.Config) { c.Hosts = []string{c.Hosts[1], c.Hosts[0]} },
			peer: func(*cluster.Config) {}, want: "the first of Config.Hosts must begin, here 127.0.0.1:",
		},
		"another version":                           {version: 7, want: "it speaks version 7 of the protocol between members, and this one 2"},
		"another authority":                         {own: secure(other, "a", other.file), peer: secure(ca, "b", ca.file), want: "certificate signed by unknown authority"},
		"a certificate that the other host refuses": {own: secure(other, "a", both), peer: secure(ca, "b", ca.file), want: "unknown certificate authority"},
		"only the other host has TLS":               {peer: secure(ca, "b", ca.file), want: "it may need TLS, which is not set here"},
		"only this host has TLS":                    {own: secure(ca, "a", ca.file), peer: func(*cluster.Config) {}, want: "first record does not look like a TLS handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			hosts, dir, lines := []string{free(t), free(t)}, t.TempDir(), make(logLines, 1000)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			start := func(i int, logger zerolog.Logger, set func(*cluster.Config)) error {
				cfg := cluster.Config{
					Supervisor: supervisor.Config{Servers: []supervisor.Server{{Name: "s", URL: "http://127.0.0.1:1"}}, Logger: logger},
					Listen:     hosts[i], Hosts: hosts, Directory: dir,
				}
				if set != nil {
					set(&cfg)
				}
				_, err := cluster.Start(ctx, actor.NewActorSystem(), cfg)
				return err
			}
			var wait sync.WaitGroup
			switch {
			case row.peer != nil:
				wait.Go(func() { start(1, zerolog.Nop(), row.peer) })
			case row.version != 0:
				wait.Go(func() { speak(ctx, t, row.version, hosts[1], hosts[0]) })
			}
			wait.Go(func() {
				defer cancel()
				for ctx.Err() == nil {
					select {
					case line := <-lines:
						if strings.Contains(line, `"message":"member waits"`) && strings.Contains(line, hosts[1]+": ") && strings.Contains(line, row.want) {
							return
						}
					case <-ctx.Done():
					}
				}
			})
			err := start(0, zerolog.New(lines), row.own)
			wait.Wait()
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, row.want)
		})
	}
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
	require.ErrorContains(t, err, "etcd must answer at http://"+silent.Addr().String())
	require.Less(t, time.Since(began), 5*time.Second)
	again, err := net.Listen("tcp", cfg.Listen)
	require.NoError(t, err, "the port is free again")
	require.NoError(t, again.Close())
}

// A host that cannot write its log is fenced, which Members shows, and the others go on without it.
func TestHostThatCannotWriteItsLogIsFenced(t *testing.T) {
	s, hosts, lines := newCounters(t), []string{free(t), free(t), free(t)}, make(logLines, 1000)
	var cfgs []cluster.Config
	for _, host := range hosts {
		cfgs = append(cfgs, cluster.Config{Listen: host, Hosts: hosts, Directory: t.TempDir(), Lease: 500 * time.Millisecond})
	}
	cfgs[0].Supervisor.Logger = zerolog.New(lines)
	members := s.startAll(t, cfgs...)
	isFenced := func(m *cluster.Member) bool {
		return slices.ContainsFunc(m.Members(), func(one messages.MemberSnapshot) bool { return one.Self && !one.Answered })
	}
	require.Eventually(t, func() bool { return !isFenced(members[0]) }, 20*time.Second, 10*time.Millisecond)
	cluster.CloseLog(members[0])
	for line := range lines {
		if strings.Contains(line, "the log of the host cannot be written") {
			break
		}
	}
	require.Eventually(t, func() bool { return isFenced(members[0]) }, 20*time.Second, 10*time.Millisecond)
	for _, m := range members[1:] {
		knows(t, m, 2)
		call(t, m, "x")
		require.Eventually(t, func() bool { return !isFenced(m) }, 20*time.Second, 10*time.Millisecond)
	}
	require.True(t, isFenced(members[0]))
}

// speak is a host that speaks a version of the protocol with another host, until ctx ends.
func speak(ctx context.Context, t *testing.T, version uint32, at, with string) {
	m := mesh.New(mesh.Config{
		Cluster: "mcpactor", Version: version, Self: link.Address{Host: at}, Logger: zerolog.Nop(),
		Dial:   func(context.Context, string) (net.Conn, error) { return nil, net.ErrClosed },
		Decode: func(*mesh.Link, link.Message) any { return nil }, Received: func(*mesh.Link, any) {}, Changed: func(*mesh.Link, link.State) {},
	})
	defer context.AfterFunc(ctx, m.Close)()
	m.Link(link.Address{Host: with})
	listener, err := net.Listen("tcp", at)
	if err != nil {
		t.Error(err)
		return
	}
	m.Serve(listener)
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
