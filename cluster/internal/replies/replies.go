// Package replies merges the replies of the members of a cluster to one command into the reply to its caller.
package replies

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// Replies are what the members have said to a command so far.
type Replies struct {
	cmd        messages.Command
	parts      []part
	unanswered []string
	members    []messages.MemberSnapshot
}

// part is the reply of one member.
type part struct {
	member string
	reply  messages.Reply
}

// New returns the replies to a command that goes to some members. A snapshot lists these.
func New(cmd messages.Command, members []messages.MemberSnapshot) *Replies {
	return &Replies{cmd: cmd, members: members}
}

// Take takes the reply of a member. A member that left, stops, is too busy or did not answer in time is
// listed in unanswered.
func (r *Replies) Take(member string, reply messages.Reply) {
	if f, failed := reply.(*messages.Failure); failed {
		_, binds := r.cmd.(*messages.Bind)
		switch f.Code {
		case messages.CodeBusy:
			if binds { // there are too many bindings
				break
			}
			fallthrough
		case messages.CodeUnavailable, messages.CodeDraining, messages.CodeClosed, messages.CodeDeadline:
			r.unanswered = append(r.unanswered, member)
			return
		}
	}
	r.parts = append(r.parts, part{member, reply})
}

// Miss notes that a member did not answer in time.
func (r *Replies) Miss(member string) { r.unanswered = append(r.unanswered, member) }

// Merge returns one reply for those of all members. failure makes that of this member. Members that do not have the server do not count if
// others have it: they may differ while their configurations are reloaded.
func (r *Replies) Merge(failure func(messages.Code, string) *messages.Failure) messages.Reply {
	if others := slices.DeleteFunc(slices.Clone(r.parts), lacksServer); len(others) > 0 {
		r.parts = others
	}
	r.missEarlierVersions()
	slices.Sort(r.unanswered)
	slices.SortFunc(r.parts, func(a, b part) int { return cmp.Compare(a.member, b.member) })
	for _, p := range r.parts {
		if f, failed := p.reply.(*messages.Failure); failed {
			return f
		}
	}
	switch cmd := r.cmd.(type) {
	case *messages.Inspect:
		return r.snapshot(cmd)
	case *messages.CloseScope, *messages.CloseServer, *messages.CloseMatching, *messages.CloseAll:
		return r.closed()
	case *messages.ReleaseHandles:
		return r.handlesReleased()
	case *messages.ListHandles:
		return r.handles()
	}
	if len(r.unanswered) > 0 {
		return failure(messages.CodeUnavailable, "not confirmed by "+strings.Join(r.unanswered, ", "))
	}
	return r.parts[0].reply
}

// lacksServer reports whether a member has refused a command because it does not have the server.
func lacksServer(p part) bool {
	f, failed := p.reply.(*messages.Failure)
	return failed && f.Code == messages.CodeUnknownServer
}

// missEarlierVersions counts members as unanswered that have refused a command about handles as invalid, if others have not: their version does
// not know it.
func (r *Replies) missEarlierVersions() {
	switch r.cmd.(type) {
	case *messages.ReleaseHandles, *messages.ListHandles:
	default:
		return
	}
	refused := func(p part) bool {
		f, failed := p.reply.(*messages.Failure)
		return failed && f.Code == messages.CodeInvalid
	}
	others := slices.DeleteFunc(slices.Clone(r.parts), refused)
	if len(others) == 0 {
		return
	}
	for _, p := range r.parts {
		if refused(p) {
			r.unanswered = append(r.unanswered, p.member)
		}
	}
	r.parts = others
}

// closed merges the replies to a close command.
func (r *Replies) closed() *messages.Closed {
	all := &messages.Closed{ID: r.cmd.RequestID(), Unanswered: r.unanswered}
	for _, p := range r.parts {
		one, ok := p.reply.(*messages.Closed)
		if !ok {
			continue
		}
		all.Sessions += one.Sessions
		all.Left = append(all.Left, one.Left...)
	}
	return all
}

// handlesReleased merges the replies to [messages.ReleaseHandles].
func (r *Replies) handlesReleased() *messages.HandlesReleased {
	all := &messages.HandlesReleased{ID: r.cmd.RequestID(), Unanswered: r.unanswered}
	for _, p := range r.parts {
		if one, ok := p.reply.(*messages.HandlesReleased); ok {
			all.Released += one.Released
			all.Left = append(all.Left, one.Left...)
		}
	}
	return all
}

// handles merges the replies to [messages.ListHandles].
func (r *Replies) handles() *messages.HandleList {
	all := &messages.HandleList{ID: r.cmd.RequestID(), Handles: []messages.HeldHandle{}, Unanswered: r.unanswered}
	for _, p := range r.parts {
		if one, ok := p.reply.(*messages.HandleList); ok {
			all.Handles = append(all.Handles, one.Handles...)
		}
	}
	slices.SortStableFunc(all.Handles, func(a, b messages.HeldHandle) int { return cmp.Or(a.Minted.Compare(b.Minted), a.Key.Compare(b.Key)) })
	return all
}

// snapshot merges the snapshots of the members.
func (r *Replies) snapshot(cmd *messages.Inspect) *messages.Snapshot {
	all := &messages.Snapshot{
		ID: cmd.ID, Time: time.Now(), States: map[messages.State]int{}, Members: r.members,
		Servers: []messages.ServerSnapshot{}, Sessions: []messages.SessionSnapshot{},
	}
	servers := map[string]*messages.ServerSnapshot{}
	for _, p := range r.parts {
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
		at := slices.IndexFunc(r.parts, func(p part) bool { return p.member == m.Name })
		if m.Answered = at >= 0; m.Answered {
			if one, ok := r.parts[at].reply.(*messages.Snapshot); ok {
				m.Sessions, m.Open, m.Cap = one.Total, one.Open, one.Cap
				for _, self := range one.Members {
					m.Fenced, m.Refused, m.View, m.Lease, m.Hop = self.Fenced, self.Refused, self.View, self.Lease, self.Hop
				}
			}
		}
	}
	r.limit(all, cmp.Or(cmd.Limit, messages.DefaultInspectLimit))
	return all
}

// limit lists as many sessions as were asked for: the first ones in the order of
// [messages.Inspect], sorted by key.
func (r *Replies) limit(all *messages.Snapshot, most int) {
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
	all.Load.Bounded += one.Load.Bounded
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
		sum.Items, sum.Bytes = max(sum.Items, lists.Items), max(sum.Bytes, lists.Bytes)
		all.Lists[method] = sum
	}
	for i := range one.Handles {
		mergeHandles(all, &one.Handles[i])
	}
	add(&all.Load, &one.Load)
}

// maxLeft is how many handles that are left a snapshot lists for one kind.
const maxLeft = 100

// mergeHandles adds what a member says of a kind of handles. Each member has a line and a bound of its own.
func mergeHandles(all *messages.ServerSnapshot, one *messages.HandleSnapshot) {
	at := slices.IndexFunc(all.Handles, func(h messages.HandleSnapshot) bool { return h.Mint == one.Mint })
	if at < 0 {
		at = len(all.Handles)
		all.Handles = append(all.Handles, messages.HandleSnapshot{Mint: one.Mint})
	}
	sum, numbers := &all.Handles[at], *one
	left := slices.Concat(sum.Left, one.Left)
	slices.SortStableFunc(left, func(a, b messages.Left) int { return a.Key.Compare(b.Key) })
	sum.Left, numbers.Left = nil, nil
	add(sum, &numbers)
	sum.Left = left[:min(len(left), maxLeft)]
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
