package node

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// gather is a command to all members, until all have answered, or their time is over.
type gather struct {
	cmd     messages.Command
	caller  *actor.PID
	missing map[*exchange]string // parts without a reply, with the name of the member
	own     *actor.PID           // takes the own supervisor's reply, or nil once it has replied
	timer   timer

	parts      []part
	unanswered []string
	members    []messages.MemberSnapshot
}

// part is the reply of one member.
type part struct {
	member string
	reply  messages.Reply
}

// gatherDue says that the time of a command to all members is over.
type gatherDue struct{ of *gather }

// gather gives a command to all members, if this member may do so.
func (n *node) gather(c actor.Context, cmd messages.Command, limit time.Duration) {
	_, inspects := cmd.(*messages.Inspect)
	if why := n.whyFenced(); why != "" && !inspects {
		n.reply(c.Sender(), n.failure(cmd, messages.CodeUnavailable, why))
		return
	}
	var past history
	if bind, binds := cmd.(*messages.Bind); binds {
		past.Binding = n.addBinding(bind)
	}
	g := &gather{cmd: cmd, caller: c.Sender(), missing: map[*exchange]string{}, members: n.snapshot()}
	g.own = n.newOwnBox(c, g)
	c.RequestWithCustomSender(n.cfg.Supervisor, cmd, g.own)
	g.timer = n.after(c, limit, &gatherDue{g})
	for _, p := range inOrder(n.peers) {
		if p.alive() {
			x := &exchange{cmd: cmd, gather: g, history: past}
			g.missing[x] = p.label()
			n.add(x)
			n.give(c, x, p)
		}
	}
}

// onPart takes the reply of another member.
func (n *node) onPart(c actor.Context, x *exchange, reply messages.Reply) {
	g := x.gather
	member, missing := g.missing[x]
	if !missing {
		return
	}
	delete(g.missing, x)
	g.take(member, reply)
	n.answerGather(c, g)
}

// onOwnPart takes the reply of the own supervisor.
func (n *node) onOwnPart(c actor.Context, g *gather, message any) {
	if g.own == nil {
		return
	}
	n.closeOwnBox(c, g)
	reply, ok := message.(messages.Reply)
	if !ok {
		reply = n.failure(g.cmd, messages.CodeClosed, "the supervisor has stopped")
	}
	n.settleBinding(g.cmd, reply)
	g.take(n.cfg.Name, reply)
	n.answerGather(c, g)
}

// take takes the reply of a member. A member that left, stops, is too busy or did not answer in time is
// listed in unanswered.
func (g *gather) take(member string, reply messages.Reply) {
	if f, failed := reply.(*messages.Failure); failed {
		_, binds := g.cmd.(*messages.Bind)
		switch f.Code {
		case messages.CodeBusy:
			if binds { // there are too many bindings
				break
			}
			fallthrough
		case messages.CodeUnavailable, messages.CodeDraining, messages.CodeClosed, messages.CodeDeadline:
			g.unanswered = append(g.unanswered, member)
			return
		}
	}
	g.parts = append(g.parts, part{member, reply})
}

// onGatherDue answers with what has come.
func (n *node) onGatherDue(c actor.Context, g *gather) {
	if g.own == nil && len(g.missing) == 0 {
		return
	}
	for x, member := range g.missing {
		g.unanswered = append(g.unanswered, member)
		n.end(x)
	}
	clear(g.missing)
	if g.own != nil {
		g.unanswered = append(g.unanswered, n.cfg.Name)
		n.closeOwnBox(c, g)
	}
	n.answerGather(c, g)
}

// answerGather answers when all parts are there.
func (n *node) answerGather(c actor.Context, g *gather) {
	if g.own != nil || len(g.missing) > 0 {
		return
	}
	g.timer.Stop()
	slices.Sort(g.unanswered)
	n.reply(g.caller, n.merge(g))
}

// merge returns one reply for those of all members. Members that do not have the server do not count if
// others have it: they may differ while their configurations are reloaded.
func (n *node) merge(g *gather) messages.Reply {
	if others := slices.DeleteFunc(slices.Clone(g.parts), lacksServer); len(others) > 0 {
		g.parts = others
	}
	slices.SortFunc(g.parts, func(a, b part) int { return cmp.Compare(a.member, b.member) })
	for _, p := range g.parts {
		if f, failed := p.reply.(*messages.Failure); failed {
			return f
		}
	}
	switch cmd := g.cmd.(type) {
	case *messages.Inspect:
		return g.snapshot(cmd)
	case *messages.CloseScope, *messages.CloseServer, *messages.CloseMatching, *messages.CloseAll:
		return g.closed()
	}
	if len(g.unanswered) > 0 {
		return n.failure(g.cmd, messages.CodeUnavailable, "not confirmed by "+strings.Join(g.unanswered, ", "))
	}
	return g.parts[0].reply
}

// lacksServer reports whether a member has refused a command because it does not have the server.
func lacksServer(p part) bool {
	f, failed := p.reply.(*messages.Failure)
	return failed && f.Code == messages.CodeUnknownServer
}

// closed merges the replies to a close command.
func (g *gather) closed() *messages.Closed {
	all := &messages.Closed{ID: g.cmd.RequestID(), Unanswered: g.unanswered}
	for _, p := range g.parts {
		one, ok := p.reply.(*messages.Closed)
		if !ok {
			continue
		}
		all.Sessions += one.Sessions
		all.Left = append(all.Left, one.Left...)
	}
	return all
}

// snapshot merges the snapshots of the members.
func (g *gather) snapshot(cmd *messages.Inspect) *messages.Snapshot {
	all := &messages.Snapshot{
		ID: cmd.ID, Time: time.Now(), States: map[messages.State]int{}, Members: g.members,
		Servers: []messages.ServerSnapshot{}, Sessions: []messages.SessionSnapshot{},
	}
	servers := map[string]*messages.ServerSnapshot{}
	for _, p := range g.parts {
		one, ok := p.reply.(*messages.Snapshot)
		if !ok {
			continue
		}
		all.Sessions = append(all.Sessions, one.Sessions...)
		all.Total += one.Total
		all.Waiting += one.Waiting
		all.Open += one.Open
		all.Cap += one.Cap
		for state, count := range one.States {
			all.States[state] += count
		}
		add(&all.Counters, &one.Counters)
		for i := range one.Servers {
			mergeServer(servers, &one.Servers[i])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		all.Servers = append(all.Servers, *servers[name])
	}
	for i := range all.Members {
		m := &all.Members[i]
		at := slices.IndexFunc(g.parts, func(p part) bool { return p.member == m.Name })
		if m.Answered = at >= 0; m.Answered {
			if one, ok := g.parts[at].reply.(*messages.Snapshot); ok {
				m.Sessions, m.Open, m.Cap = one.Total, one.Open, one.Cap
			}
		}
	}
	g.limit(all, cmp.Or(cmd.Limit, messages.DefaultInspectLimit))
	return all
}

// limit lists as many sessions as were asked for: the first ones in the order of
// [messages.Inspect], sorted by key.
func (g *gather) limit(all *messages.Snapshot, most int) {
	if most >= 0 && len(all.Sessions) > most {
		slices.SortStableFunc(all.Sessions, func(a, b messages.SessionSnapshot) int {
			return cmp.Or(cmp.Compare(slices.Index(clusterapi.States(), a.State), slices.Index(clusterapi.States(), b.State)), cmp.Compare(a.Key.Server, b.Key.Server))
		})
		all.Sessions = all.Sessions[:most]
	}
	slices.SortStableFunc(all.Sessions, func(a, b messages.SessionSnapshot) int {
		return a.Key.Compare(b.Key)
	})
}

// mergeServer adds what a member says of a server. If one of the members cannot reach the server, it
// counts as down.
func mergeServer(servers map[string]*messages.ServerSnapshot, one *messages.ServerSnapshot) {
	all := servers[one.Name]
	if all == nil {
		all = &messages.ServerSnapshot{Name: one.Name, Health: messages.HealthUnknown}
		servers[one.Name] = all
	}
	if one.Health == messages.HealthDown && all.Health != messages.HealthDown || all.Health == messages.HealthUnknown {
		all.Health, all.Since, all.Cause, all.RetryAt = one.Health, one.Since, one.Cause, one.RetryAt
	}
	all.Sessions += one.Sessions
	for state, count := range one.States {
		if all.States == nil {
			all.States = map[messages.State]int{}
		}
		all.States[state] += count
	}
	for code, count := range one.Load.Failed {
		if all.Load.Failed == nil {
			all.Load.Failed = map[messages.Code]uint64{}
		}
		all.Load.Failed[code] += count
	}
	for method, lists := range one.Lists { // of its own catalogue
		if all.Lists == nil {
			all.Lists = map[string]messages.ListsSnapshot{}
		}
		sum := all.Lists[method]
		if sum.Oldest.IsZero() || lists.Oldest.Before(sum.Oldest) {
			sum.Oldest = lists.Oldest
		}
		sum.Lists, sum.Scopes, sum.Stale = sum.Lists+lists.Lists, sum.Scopes+lists.Scopes, sum.Stale+lists.Stale
		sum.Items = max(sum.Items, lists.Items)
		all.Lists[method] = sum
	}
	add(&all.Load, &one.Load)
}

// add adds the integers of a struct, and of the structs, arrays and slices in it, to those of another one
// of the same type. It ignores all other fields.
func add[T any](sum, one *T) { addValue(reflect.ValueOf(sum).Elem(), reflect.ValueOf(one).Elem()) }

func addValue(sum, one reflect.Value) {
	switch sum.Kind() {
	case reflect.Struct:
		for i := range sum.NumField() {
			addValue(sum.Field(i), one.Field(i))
		}
	case reflect.Array:
		for i := range sum.Len() {
			addValue(sum.Index(i), one.Index(i))
		}
	case reflect.Slice:
		if sum.Len() < one.Len() {
			grown := reflect.MakeSlice(sum.Type(), one.Len(), one.Len())
			reflect.Copy(grown, sum)
			sum.Set(grown)
		}
		for i := range one.Len() {
			addValue(sum.Index(i), one.Index(i))
		}
	case reflect.Uint64:
		sum.SetUint(sum.Uint() + one.Uint())
	case reflect.Int, reflect.Int64:
		sum.SetInt(sum.Int() + one.Int())
	}
}
