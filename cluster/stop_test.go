package cluster_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

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

// What reaches a member that stops did not run, and is answered with the one code that docs/cluster.md names.
func TestWhatReachesAMemberThatStopsIsClosed(t *testing.T) {
	for _, count := range []int{1, 2} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			s, hub := newCounters(t), cluster.NewInProcess()
			var scopes []string // of each member
			members := s.startAll(t, []cluster.Config{inProcess(hub, "a"), inProcess(hub, "b")}[:count]...)
			for _, m := range members {
				scopes = append(scopes, scopeOn(t, m, "counter"))
			}
			stops := members[0]
			running := make(chan error, 1)
			go func() {
				_, err := stops.Client().CallTool(t.Context(), "counter", scopes[0], &mcp.CallToolParams{Name: "wait"})
				running <- err
			}()
			<-s.waiting
			proceed := sync.OnceFunc(func() { close(s.proceed) })
			t.Cleanup(proceed)
			stopped := make(chan error, 1)
			go func() { stopped <- stops.Stop(t.Context()) }()
			call := func(scope string) error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second) // one that came just before goes to the next owner, and waits there
				defer cancel()
				_, err := stops.Client().CallTool(ctx, "counter", scope, &mcp.CallToolParams{Name: "add"})
				return err
			}
			require.Eventually(t, func() bool { return call(scopes[0]) != nil }, 10*time.Second, time.Millisecond)
			refused := func() {
				for _, scope := range scopes {
					var f *messages.Failure
					require.ErrorAs(t, call(scope), &f)
					require.Equal(t, messages.CodeClosed, f.Code)
					require.False(t, f.MayHaveRun)
				}
			}
			for range 100 { // in all that follows until it waits for the call only
				refused()
				time.Sleep(time.Millisecond)
			}
			proceed()
			for len(stopped) == 0 {
				refused()
			}
			require.NoError(t, <-stopped)
			require.NoError(t, <-running)
			refused()
			for _, cmd := range []func(context.Context) error{
				func(ctx context.Context) error { _, err := stops.Client().Inspect(ctx); return err },
				func(ctx context.Context) error { _, err := stops.Client().CloseAll(ctx); return err },
			} {
				require.ErrorIs(t, cmd(t.Context()), messages.CodeClosed)
			}
		})
	}
}

// The same holds for the last member, which also closes the sessions that only the store knows. A command that is no call may
// still be done while the member leaves.
func TestWhatReachesTheLastMemberThatStopsIsClosed(t *testing.T) {
	s, hub, records := newCounters(t), cluster.NewInProcess(), new(resume.Memory)
	cfgs := []cluster.Config{inProcess(hub, "a"), inProcess(hub, "b")}
	for i := range cfgs {
		cfgs[i].Supervisor.Store = records
	}
	members := s.startAll(t, cfgs...)
	last := members[0]
	const scopes = 200
	for i := range scopes {
		call(t, members[i%2], fmt.Sprint(i))
	}
	require.NoError(t, members[1].Stop(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- last.Stop(t.Context()) }()
	do := func(cmd messages.Command) error {
		_, err := last.Client().Do(t.Context(), cmd)
		return err
	}
	refused := false
	for i := 0; len(stopped) == 0; i++ {
		key := messages.Key{Server: "counter", Scope: fmt.Sprint(i % scopes)}
		err := do(&messages.CallTool{Header: messages.Header{Key: key}, Params: &mcp.CallToolParams{Name: "add"}})
		if refused = refused || err != nil; refused {
			require.ErrorIs(t, err, messages.CodeClosed)
		}
		for _, cmd := range []messages.Command{&messages.CloseSession{Key: key}, &messages.Pin{Key: key}, &messages.CloseScope{Scope: "none"}} {
			if err := do(cmd); err != nil {
				require.ErrorIs(t, err, messages.CodeClosed, "%T", cmd)
			}
		}
	}
	require.NoError(t, <-stopped)
	require.Zero(t, s.left())
}

// Each call of Stop returns when the member has stopped.
func TestSeveralCallsOfStopReturn(t *testing.T) {
	s := newCounters(t)
	s.closing, s.close = make(chan struct{}), make(chan struct{})
	m := s.start(t, inProcess(cluster.NewInProcess(), "a"))
	call(t, m, "x")
	stopped := make(chan error, 3)
	for range cap(stopped) {
		go func() { stopped <- m.Stop(t.Context()) }()
	}
	<-s.closing
	close(s.close)
	for range cap(stopped) {
		select {
		case err := <-stopped:
			require.NoError(t, err)
		case <-time.After(20 * time.Second):
			t.Fatal("Stop does not return")
		}
	}
}
