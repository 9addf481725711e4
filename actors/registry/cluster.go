package registry

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// onCluster replaces the cluster.
func (r *registry) onCluster(msg *protocol.Cluster) {
	r.cluster = *msg
	r.tellTimeouts()
}

// tellTimeouts tells the node the timeouts of the servers, if there is one.
func (r *registry) tellTimeouts() {
	if r.cluster.HandBack == nil {
		return
	}
	t := &protocol.Timeouts{Calls: make(map[string]time.Duration, len(r.table.Servers)), Call: r.table.Common().CallTimeout, Close: r.closeTime()}
	for name, srv := range r.table.Servers {
		t.Calls[name] = srv.Resolved.CallTimeout
		t.Connect = max(t.Connect, srv.Resolved.ConnectTimeout)
	}
	r.cfg.Post.Send(r.cluster.HandBack, t)
}

// owns reports whether this member owns a key.
func (r *registry) owns(key messages.Key) bool { return r.cluster.Owns == nil || r.cluster.Owns(key) }

// handBack sends a call whose key another member owns, or which asks another member for a list, to the cluster, and
// reports whether it has done so. The call has left the registry then.
func (r *registry) handBack(k *contract.Call) bool {
	if k.List == (messages.Key{}) && r.owns(k.Key) {
		return false
	}
	if _, is := k.Op.(*contract.Reopen); is {
		r.reject(k, k.Failure(messages.CodeClosed, "another member of the cluster runs the session"))
		return true
	}
	h := *k.Op.Head()
	h.Key, h.Deadline = k.Key, k.Deadline
	back := &protocol.HandedBack{Op: messages.With(k.Op, h), Caller: k.Caller, Values: k.Values, Intercepted: k.Intercepted, List: k.List, Runs: k.Runs}
	if k.Lost != nil {
		back.MayHaveRun, back.Detail = true, k.Lost.ForCaller()
	}
	r.owners.Answered(k)
	r.cfg.Post.Send(r.cluster.HandBack, back)
	return true
}

// withdraw cancels a call that was accepted, also if it was handed back since.
func (r *registry) withdraw(k *contract.Call) {
	cancelCall(k, "")
	if !r.owns(k.Key) && k.Op.RequestID() != "" {
		r.cfg.Post.Send(r.cluster.HandBack, &protocol.Withdrawn{Cancel: &messages.Cancel{Key: k.Key, ID: k.Op.RequestID()}})
	}
}

// onRelease drains the sessions of the keys that match.
func (r *registry) onRelease(msg *protocol.Release, from *actor.PID) {
	how := contract.Drain{Evict: true, Restart: true, Moves: true, Now: msg.Now, Leave: msg.Leave && r.cfg.Store != nil}
	r.drainAll(r.beginClose("", from, selection{match: msg.Match, servers: anyServer}, how))
}
