// Package member is what a registry knows of the cluster that it is a member of.
package member

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// Member asks the node of the cluster, and tells it what it has to know. Without a cluster, the registry owns all keys.
type Member struct {
	cfg     *contract.Config
	table   *table.Table
	cluster protocol.Cluster // whose Owns is nil without a cluster
}

// New returns a member of no cluster.
func New(cfg *contract.Config, t *table.Table) *Member { return &Member{cfg: cfg, table: t} }

// Join replaces the cluster.
func (m *Member) Join(cluster protocol.Cluster) { m.cluster = cluster }

// TellTimeouts tells the node the timeouts of the servers, and how long a close command takes.
func (m *Member) TellTimeouts(closing time.Duration) {
	if m.cluster.HandBack == nil {
		return
	}
	t := &protocol.Timeouts{Calls: make(map[string]time.Duration, len(m.table.Servers)), Call: m.table.Common.CallTimeout, Close: closing}
	for name, srv := range m.table.Servers {
		t.Calls[name] = srv.Resolved.CallTimeout
		t.Connect = max(t.Connect, srv.Resolved.ConnectTimeout)
	}
	m.cfg.Post.Send(m.cluster.HandBack, t)
}

// IsClustered reports whether there are other members.
func (m *Member) IsClustered() bool { return m.cluster.Owns != nil }

// Owns reports whether this member owns a key.
func (m *Member) Owns(key messages.Key) bool { return m.cluster.Owns == nil || m.cluster.Owns(key) }

// IsFor reports whether a call is for this member: another one may own its key, or be asked for a list.
func (m *Member) IsFor(k *contract.Call) bool {
	return m.cluster.Owns == nil || k.List == (messages.Key{}) && m.Owns(k.Key)
}

// HandBack sends a call that is for another member to the cluster. It has left the registry then.
func (m *Member) HandBack(k *contract.Call) {
	h := *k.Op.Head()
	h.Key, h.Deadline = k.Key, k.Deadline
	back := &protocol.HandedBack{Op: messages.With(k.Op, h), Caller: k.Caller, Values: k.Values, Intercepted: k.Intercepted, List: k.List, Runs: k.Run.Attempts}
	if k.Run.Lost != nil {
		back.MayHaveRun, back.Detail = true, k.Run.Lost.ForCaller()
	}
	m.cfg.Post.Send(m.cluster.HandBack, back)
}

// Withdraw cancels a call that was handed back, if it was.
func (m *Member) Withdraw(k *contract.Call) {
	if !m.Owns(k.Key) && k.Op.RequestID() != "" {
		m.cfg.Post.Send(m.cluster.HandBack, &protocol.Withdrawn{Cancel: &messages.Cancel{Key: k.Key, ID: k.Op.RequestID()}})
	}
}

// Describe adds the member to a snapshot whose sessions were counted.
func (m *Member) Describe(snap *messages.Snapshot) {
	if m.cluster.Self != nil {
		self := m.cluster.Self()
		self.Sessions, self.Open, self.Cap = snap.Total, snap.Open, snap.Cap
		snap.Members = []messages.MemberSnapshot{self}
	}
}
