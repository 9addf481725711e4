//go:build linux

package cluster_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/tests/cluster/history"
	"github.com/mcpactor/mcpactor/tests/cluster/member"
)

// each runs a scenario on each setting: those of the quick form, or all.
func each(t *testing.T, quick, others []setting, scenario func(t *testing.T, s setting)) {
	t.Helper()
	all := quick
	if *full {
		all = append(all[:len(all):len(all)], others...)
	}
	if len(all) == 0 {
		t.Skip("it takes long: use -full")
	}
	for _, s := range all {
		name := s.witness
		if s.shared {
			name += "-shared"
		}
		if s.tls {
			name += "-tls"
		}
		t.Run(name, func(t *testing.T) { scenario(t, s) })
	}
}

// The settings.
var (
	static       = setting{witness: "hosts"}
	staticShared = setting{witness: "hosts", shared: true}
	onEtcd       = setting{witness: "etcd"}
	onEtcdShared = setting{witness: "etcd", shared: true}
	withTLS      = setting{witness: "hosts", tls: true}
	onEtcdTLS    = setting{witness: "etcd", shared: true, tls: true}
)

// scopes returns the names of scopes.
func scopes(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("scope-", i))
	}
	return all
}

// load is the load of most scenarios.
func load() member.Load {
	l := member.Load{Scopes: scopes(40), Rate: 80, Timeout: 10 * time.Second, Seed: 1}
	if *full {
		l.Scopes, l.Rate = scopes(100), 200
	}
	return l
}

// work lets the agents work for some time.
func work() { <-time.After(scaled(2*time.Second, 5*time.Second)) }

func TestConcurrentFirstCallsOpenOneSessionForEachScope(t *testing.T) {
	each(t, []setting{static}, []setting{staticShared, onEtcd, onEtcdShared}, func(t *testing.T, s setting) {
		c := start(t, s)
		const n = 200
		c.start(member.Load{Scopes: scopes(n), Timeout: 20 * time.Second, Seed: 1})
		r := c.end()
		require.Equal(t, size*n, r.Succeeded)
		require.Equal(t, n, r.Sessions)
	})
}

func TestKilledMembersScopesWorkElsewhere(t *testing.T) {
	each(t, []setting{withTLS, staticShared}, []setting{static, onEtcd, onEtcdShared, onEtcdTLS}, func(t *testing.T, s setting) {
		c := start(t, s)
		c.start(load())
		work()
		c.kill(1)
		work()
		c.join(1)
		r := c.end(messages.CodeLost)
		c.requireKept(r)
	})
}

func TestMembersThatStopAtOnceLeaveNoSession(t *testing.T) {
	each(t, []setting{onEtcdShared}, []setting{static, staticShared, onEtcd}, func(t *testing.T, s setting) {
		c := start(t, s)
		all := scopes(40)
		c.start(member.Load{Scopes: all, Timeout: 20 * time.Second})
		c.quiet()
		require.Equal(t, len(all), c.server.Live())
		members := c.running()
		for i, n := range members {
			c.slots[i].running = nil
			n.signal(syscall.SIGTERM)
		}
		for _, n := range members {
			n.wait()
		}
		require.Zero(t, c.server.Live())
	})
}

// Hosts that were killed are voters until another one stops.
func TestLastHostWithoutAMajorityNamesItsSessions(t *testing.T) {
	each(t, nil, []setting{staticShared}, func(t *testing.T, s setting) {
		c := start(t, s)
		all := scopes(40)
		c.start(member.Load{Scopes: all, Timeout: 10 * time.Second})
		c.quiet()
		c.kill(1)
		c.slots[0].running.kill()
		last := c.slots[2].running
		c.slots[0].running, c.slots[2].running = nil, nil
		<-time.After(2 * lease)
		last.signal(syscall.SIGTERM)
		<-last.exited
		require.Equal(t, 1, last.cmd.ProcessState.ExitCode())
		require.Equal(t, len(all), c.server.Live())
		c.server.Record(&c.history)
		own := 0
		for _, one := range c.history.Sessions {
			if one.Opener == last.name {
				own++
			}
		}
		require.Contains(t, last.tail(), fmt.Sprintf("%d sessions could not be closed; counter/scope-", own))
		require.Contains(t, last.tail(), "the member is fenced")
	})
}

func TestLeavingMembersCallsFinish(t *testing.T) {
	each(t, []setting{static, staticShared}, []setting{onEtcd, onEtcdShared}, func(t *testing.T, s setting) {
		c := start(t, s)
		c.start(load())
		work()
		c.leave(1)
		work()
		r := c.end(messages.CodeClosed)
		c.requireRefusedByTheLeaving()
		c.requireKept(r)
	})
}

func TestRollingRestartLosesNothing(t *testing.T) {
	each(t, []setting{static}, []setting{staticShared, onEtcd, onEtcdShared}, func(t *testing.T, s setting) {
		c := start(t, s)
		c.start(load())
		for i := range size {
			work()
			c.leave(i)
			c.join(i)
		}
		work()
		r := c.end(messages.CodeClosed)
		c.requireRefusedByTheLeaving()
		if s.shared {
			require.Equal(t, r.Had, r.Kept)
		}
	})
}

// A host that was killed, and does not come back, is not needed.
func TestRollingRestartBesideAKilledMemberLosesNothing(t *testing.T) {
	each(t, []setting{static}, []setting{staticShared, onEtcd, onEtcdShared}, func(t *testing.T, s setting) {
		c := start(t, s)
		c.start(load())
		c.kill(1)
		for _, i := range []int{0, 2} {
			c.leave(i)
			work()
			c.join(i)
		}
		work()
		r := c.end(messages.CodeClosed, messages.CodeLost)
		if s.shared {
			require.Equal(t, r.Had, r.Kept)
		}
	})
}

func TestMemberThatPausesBrieflyStays(t *testing.T) {
	each(t, []setting{static}, []setting{onEtcd}, func(t *testing.T, s setting) {
		c := start(t, s)
		c.start(load())
		work()
		c.pause(1, lease/4)
		work()
		r := c.end()
		require.Equal(t, r.Had, r.Kept)
	})
}

func TestMemberThatIsRemovedInItsPauseIsFenced(t *testing.T) {
	each(t, []setting{static}, []setting{staticShared, onEtcd, onEtcdShared}, func(t *testing.T, s setting) {
		c := start(t, s)
		c.start(load())
		work()
		require.True(t, c.pause(1, scaled(4*lease, 10*lease)), "the others have not removed it")
		work()
		r := c.end(messages.CodeLost, messages.CodeDeadline, messages.CodeUnavailable)
		c.requireUnavailableIfPaused()
		if s.shared {
			require.Equal(t, r.Had, r.Kept)
		}
	})
}

func TestMemberThatIsCutOffIsReplaced(t *testing.T) {
	each(t, []setting{static}, []setting{staticShared, onEtcd, onEtcdShared}, cutOff(whole))
}

func TestMemberThatHearsNobodyIsReplaced(t *testing.T) {
	each(t, nil, []setting{static, onEtcdShared}, cutOff(deaf))
}

func TestMemberThatIsCutOffFromEtcdIsReplaced(t *testing.T) {
	each(t, nil, []setting{onEtcd, onEtcdShared}, cutOff(fromEtcd))
}

// cutOff is the scenario of a member that is cut off.
func cutOff(how cutting) func(t *testing.T, s setting) {
	return func(t *testing.T, s setting) {
		s.proxied = true
		c := start(t, s)
		c.start(load())
		work()
		c.cut(1, how, scaled(lease, 5*lease))
		work()
		r := c.end(messages.CodeLost, messages.CodeDeadline, messages.CodeUnavailable)
		if s.shared {
			require.Equal(t, r.Had, r.Kept)
		}
	}
}

func TestNothingIsLostWhileEtcdIsDown(t *testing.T) {
	each(t, nil, []setting{onEtcd, onEtcdShared, staticShared}, func(t *testing.T, s setting) {
		c := start(t, s)
		l := load()
		l.Rate = 80                                                       // all calls of 10 s run at once when etcd is back
		c.start(member.Load{Scopes: l.Scopes, Timeout: 20 * time.Second}) // a session that opens in the outage waits for the store
		c.quiet()
		c.start(l)
		work()
		kind, codes := history.StoreDown, []messages.Code(nil)
		if s.witness == "etcd" { // without it all members are fenced, and calls wait until their deadline
			kind, codes = history.Down, []messages.Code{messages.CodeUnavailable, messages.CodeDeadline}
		}
		f := c.fault(kind, "")
		c.etcd.process.kill()
		<-time.After(30 * time.Second)
		c.etcd.start()
		c.record(func() { f.Until = time.Now() })
		c.awaitMembers()
		c.settled(f)
		work()
		r := c.end(codes...)
		require.Equal(t, r.Had, r.Kept)
	})
}

// Etcd starts with a backup of its data, and without any.
func TestMembersJoinAnewWhenEtcdHasLostItsData(t *testing.T) {
	each(t, []setting{onEtcd}, nil, func(t *testing.T, s setting) {
		c := start(t, s)
		c.start(load())
		c.backUpEtcd()
		c.leave(1)
		c.join(1)
		work()
		c.restoreEtcd(true)
		work()
		c.restoreEtcd(false)
		work()
		c.end(messages.CodeLost, messages.CodeDeadline, messages.CodeUnavailable, messages.CodeClosed)
	})
}

// requireKept requires that sessions of members without a fault kept their state, and with a
// shared store all sessions.
func (c *cluster) requireKept(r *history.Report) {
	c.t.Helper()
	require.Equal(c.t, r.Bystanders, r.Undisturbed)
	if c.shared {
		require.Equal(c.t, r.Had, r.Kept)
	}
}

// requireUnavailableIfPaused requires that calls were unavailable only if their own member was paused while
// they waited: such a call may end before its member is one again.
func (c *cluster) requireUnavailableIfPaused() {
	c.t.Helper()
	for _, call := range c.history.Calls {
		if call.Code == messages.CodeUnavailable {
			paused := func(f *history.Fault) bool {
				return f.Kind == history.Pause && f.Member == call.Member && call.Started.Before(f.Until) && f.At.Before(call.Ended)
			}
			require.True(c.t, slices.ContainsFunc(c.history.Faults, paused) && !call.MayHaveRun, "%+v", *call)
		}
	}
}

// requireRefusedByTheLeaving requires that calls failed only if their own member was leaving.
func (c *cluster) requireRefusedByTheLeaving() {
	c.t.Helper()
	leaving := map[string]bool{}
	for _, f := range c.history.Faults {
		leaving[f.Member] = f.Kind == history.Leave || leaving[f.Member]
	}
	for _, call := range c.history.Calls {
		if call.Code != "" {
			require.True(c.t, leaving[call.Member] && !call.MayHaveRun, "%+v", *call)
		}
	}
}
