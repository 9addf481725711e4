package tests

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

var quotaSeed = flag.Uint64("quotas.seed", 1, "seed of the first random run of the model of quotas")

// quotaModel says which sessions are open if each call ends before the next command.
type quotaModel struct {
	cap, quota int
	servers    map[string]supervisor.Limits
	idle       time.Duration
	open       []messages.Key // the least recently used first
	usedAt     map[messages.Key]time.Time
	pinned     map[messages.Key]bool
}

func tenantOf(k messages.Key) string { return supervisor.ScopePrefix("/")(k) }

// bounds returns the bounds that a key is under: how many sessions may be open, and which
// ones count.
func (m *quotaModel) bounds(k messages.Key) []quotaBound {
	return []quotaBound{
		{m.quota, messages.EvictTenantQuota, func(o messages.Key) bool { return tenantOf(o) == tenantOf(k) }},
		{cmp.Or(m.servers[k.Server].MaxSessions, m.cap), messages.EvictServerCap, func(o messages.Key) bool { return o.Server == k.Server }},
		{m.cap, messages.EvictCap, func(messages.Key) bool { return true }},
	}
}

type quotaBound struct {
	most   int
	reason messages.EvictReason
	counts func(messages.Key) bool
}

// call calls a key. It reports whether the call succeeds: it fails if all sessions under a
// bound are pinned.
func (m *quotaModel) call(k messages.Key) bool {
	if !slices.Contains(m.open, k) {
		for _, b := range m.bounds(k) {
			if n := len(filtered(m.open, func(o messages.Key) bool { return b.counts(o) && m.pinned[o] })); n >= b.most {
				return false
			}
		}
		for _, b := range m.bounds(k) {
			for len(filtered(m.open, b.counts)) >= b.most {
				m.evict(filtered(m.open, func(o messages.Key) bool { return b.counts(o) && !m.pinned[o] })[0])
			}
		}
		m.open = append(m.open, k)
	}
	m.use(k)
	return true
}

// use makes a session that is open the most recently used one.
func (m *quotaModel) use(k messages.Key) {
	if slices.Contains(m.open, k) {
		m.evict(k)
		m.open = append(m.open, k)
		m.usedAt[k] = time.Now()
	}
}

func (m *quotaModel) evict(k messages.Key) {
	m.open = slices.DeleteFunc(m.open, func(o messages.Key) bool { return o == k })
}

// pin pins a key. It reports whether that succeeds.
func (m *quotaModel) pin(k messages.Key) bool {
	if !m.pinned[k] {
		for _, b := range m.bounds(k) {
			n := 0
			for o := range m.pinned {
				if b.counts(o) {
					n++
				}
			}
			if n >= b.most {
				return false
			}
		}
		m.pinned[k] = true
		m.use(k)
	}
	return true
}

func (m *quotaModel) release(k messages.Key) {
	if m.pinned[k] {
		delete(m.pinned, k)
		m.use(k)
	}
}

// close closes the sessions of the keys that match, and ends their pins.
func (m *quotaModel) close(matches func(messages.Key) bool) {
	m.open = slices.DeleteFunc(m.open, matches)
	for k := range m.pinned {
		if matches(k) {
			delete(m.pinned, k)
		}
	}
}

// wait closes the sessions that are idle.
func (m *quotaModel) wait() {
	m.open = slices.DeleteFunc(m.open, func(k messages.Key) bool {
		return !m.pinned[k] && time.Since(m.usedAt[k]) >= cmp.Or(m.servers[k.Server].IdleTimeout, m.idle)
	})
}

func filtered(keys []messages.Key, counts func(messages.Key) bool) []messages.Key {
	return slices.DeleteFunc(slices.Clone(keys), func(k messages.Key) bool { return !counts(k) })
}

// The sessions that are open are those of a simple model, with caps of all sessions, of
// servers and of tenants, with pins, idle timeouts and closes.
func TestSessionsThatAreOpenAreThoseOfASimpleModel(t *testing.T) {
	for seed := *quotaSeed; seed < *quotaSeed+20; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { followQuotaModel(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

func followQuotaModel(t *testing.T, r *rand.Rand) {
	limits := supervisor.Limits{MaxSessions: 1 + r.IntN(5), IdleTimeout: 40 * time.Second}
	m := &quotaModel{
		cap: 2 + r.IntN(8), quota: 1 + r.IntN(4), idle: time.Minute, servers: map[string]supervisor.Limits{"own": limits},
		usedAt: map[messages.Key]time.Time{}, pinned: map[messages.Key]bool{},
	}
	cfg := supervisor.Config{MaxSessions: m.cap, IdleTimeout: m.idle, Servers: own(limits)}
	inFakeTime(t, tenants(m.quota, cfg), func(h *harness) {
		anyKey := func() messages.Key {
			return messages.Key{Server: []string{"own", "s", "other"}[r.IntN(3)], Scope: fmt.Sprintf("t%d/%d", r.IntN(4), r.IntN(4))}
		}
		for step := range 200 {
			k := anyKey()
			switch r.IntN(12) {
			case 0:
				cmd := pin(k.Server, k.Scope)
				p := h.send(cmd)
				require.Equal(h.t, m.pin(k), isPinned(p.reply()), "step %d: pin %v", step, k)
			case 1, 2:
				cmd := pin(k.Server, k.Scope)
				cmd.Release = true
				h.send(cmd).reply()
				m.release(k)
			case 3:
				h.send(&messages.CloseScope{Scope: k.Scope}).reply()
				m.close(func(o messages.Key) bool { return o.Scope == k.Scope })
			case 4:
				if r.IntN(10) == 0 {
					h.send(&messages.CloseServer{Server: k.Server}).reply()
					m.close(func(o messages.Key) bool { return o.Server == k.Server })
				}
			case 5:
				time.Sleep(time.Duration(1+r.IntN(30)) * time.Second)
			default:
				reply := h.send(call(k.Scope, "count", on(k.Server))).reply()
				_, ok := reply.(*messages.ToolResult)
				require.Equal(h.t, m.call(k), ok, "step %d: %v: %v", step, k, reply)
			}
			time.Sleep(time.Millisecond) // sessions that close at once have closed
			synctest.Wait()
			m.wait()
			snap := h.inspect()
			var open, pinned []messages.Key
			for _, s := range snap.Sessions {
				if s.State == messages.StateReady {
					open = append(open, s.Key)
				}
				if s.Pinned {
					pinned = append(pinned, s.Key)
				}
				require.Equal(h.t, tenantOf(s.Key), s.Tenant)
			}
			require.ElementsMatch(h.t, m.open, open, "step %d", step)
			require.Len(h.t, m.pinned, len(pinned), "step %d", step)
			require.Equal(h.t, len(open), snap.Open, "step %d", step)
		}
	})
}

func isPinned(reply messages.Reply) bool {
	p, ok := reply.(*messages.Pinned)
	return ok && p.Pinned
}
