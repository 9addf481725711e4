package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/cluster/internal/view"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

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

// The members list a host before it starts, and no longer after it has stopped. Each of them is restarted for that.
func TestHostsAreAddedAndRemoved(t *testing.T) {
	s, hosts, dir := newCounters(t), []string{free(t), free(t), free(t), free(t)}, t.TempDir()
	configure := func(host string, all []string) cluster.Config {
		return cluster.Config{Listen: host, Hosts: all, Directory: dir, Lease: time.Second}
	}
	var cfgs []cluster.Config
	for _, host := range hosts[:3] {
		cfgs = append(cfgs, configure(host, hosts[:3]))
	}
	members := map[string]*cluster.Member{}
	for i, m := range s.startAll(t, cfgs...) {
		members[hosts[i]] = m
	}
	restart := func(all []string, those ...string) {
		for _, host := range those {
			if m := members[host]; m != nil {
				require.NoError(t, m.Stop(t.Context()))
			}
			members[host] = s.start(t, configure(host, all))
		}
		for _, host := range all {
			knows(t, members[host], len(all))
			call(t, members[host], "x")
		}
	}
	restart(hosts, hosts...)
	require.NoError(t, members[hosts[0]].Stop(t.Context()))
	restart(hosts[1:], hosts[1:]...)
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
