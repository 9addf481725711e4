package node

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// proxies are the processes here that stand for actors of other members. The part also knows which actors here the other
// members know, and tells them when one terminates.
type proxies struct {
	*base
	questions *questions
	watched   map[string][]*peer // by reference of an actor here: the members that know it
}

func newProxies(b *base, q *questions) *proxies {
	return &proxies{base: b, questions: q, watched: map[string][]*peer{}}
}

// proxy is a process that stands for an actor of another member: the owner of a scope or of an
// operation, a handler, or a subscriber. It ends with that actor, or with its member. The supervisor watches it as it watches
// actors here.
type proxy struct {
	peer     *peer
	ref      string
	pid      *actor.PID
	uses     int // commands without a reply that name it
	pinned   bool
	watchers map[string]*actor.PID
}

// gone tells a node that an actor has terminated.
type gone struct {
	Ref string `json:"ref"`
}

func init() { wire.Register[gone]("gone") }

// adopt replaces the PIDs of actors of a member in its command by proxies, and returns these. They are kept until they are
// released.
func (a *proxies) adopt(from *peer, cmd messages.Command) (kept []*proxy) {
	eachActor(cmd, func(pid **actor.PID, stays, _ bool) {
		p := a.proxyOf(from, wire.Ref(*pid))
		p.pinned = p.pinned || stays
		p.uses++
		kept, *pid = append(kept, p), p.pid
	})
	return kept
}

// eachActor calls use with each actor that a command names. stays says that it is needed after the reply, and tells that its end is told
// to the members that get the command.
func eachActor(cmd messages.Command, use func(pid **actor.PID, stays, tells bool)) {
	some := func(pid **actor.PID, stays, tells bool) {
		if *pid != nil {
			use(pid, stays, tells)
		}
	}
	switch cmd := cmd.(type) {
	case messages.Operation:
		h := cmd.Head()
		_, subscribes := cmd.(*messages.Subscribe)
		some(&h.Handler, false, false)
		some(&h.Subscriber, subscribes, subscribes)
		some(&h.Owner, false, true)
	case *messages.Bind:
		some(&cmd.Owner, true, true)
		some(&cmd.Handler, true, true)
		some(&cmd.Subscriber, true, true)
	}
}

// release ends the proxies that nothing names any longer.
func (a *proxies) release(kept []*proxy) {
	for _, p := range kept {
		p.uses--
		a.endIfUnused(p)
	}
}

// proxyOf returns the proxy for an actor of another member.
func (a *proxies) proxyOf(from *peer, ref string) *proxy {
	if p := from.proxies[ref]; p != nil {
		return p
	}
	p := &proxy{peer: from, ref: ref, watchers: map[string]*actor.PID{}}
	p.pid = a.openProcess("proxy", func(message any, sender *actor.PID) { a.onProxied(p, message, sender) }, func(message any) {
		switch m := message.(type) {
		case *actor.Watch:
			a.onWatch(p, m.Watcher)
		case *actor.Unwatch:
			delete(p.watchers, m.Watcher.Id)
			a.endIfUnused(p)
		}
	})
	from.proxies[ref] = p
	return p
}

// endIfUnused ends a proxy that nothing names any longer.
func (a *proxies) endIfUnused(p *proxy) {
	if p.uses == 0 && !p.pinned && len(p.watchers) == 0 && p.peer.proxies[p.ref] == p {
		a.endProxy(p)
	}
}

// endProxy removes a proxy.
func (a *proxies) endProxy(p *proxy) {
	delete(p.peer.proxies, p.ref)
	a.endProcess(p.pid)
}

// onGone ends the proxy of an actor that has terminated, and tells those who watch it.
func (a *proxies) onGone(from *peer, ref string) {
	if p := from.proxies[ref]; p != nil {
		a.endProxy(p)
		a.tellWatchers(p)
	}
}

// tellWatchers tells those who watch a proxy that it has ended.
func (a *proxies) tellWatchers(p *proxy) {
	for _, watcher := range inOrder(p.watchers) {
		a.mail.Terminated(watcher, p.pid, actor.TerminatedReason_Stopped)
	}
}

// onWatch notes that an actor here watches a proxy.
func (a *proxies) onWatch(p *proxy, watcher *actor.PID) {
	if p.peer.proxies[p.ref] != p { // it has ended
		a.mail.Terminated(watcher, p.pid, actor.TerminatedReason_Stopped)
		return
	}
	p.watchers[watcher.Id] = watcher
}

// onProxied passes a message on to the member of the actor.
func (a *proxies) onProxied(p *proxy, message any, sender *actor.PID) {
	req, asks := message.(messages.Request)
	switch there := p.peer.proxies[p.ref] == p; {
	case asks && !there:
		a.mail.Send(sender, &messages.Refusal{Reason: clusterapi.NoHandler})
		return
	case asks:
		a.questions.ask(p.peer, p.ref, req, sender)
		return
	case !there:
		return
	}
	if _, must := message.(*messages.Withdrawn); must || !p.peer.link.Crowded() { // otherwise it is missed, as an event is
		p.peer.post(0, envelope{Ref: p.ref}, message)
	}
}

// onTell passes a message of another member on to an actor here: progress, an update, a withdrawn question.
func (a *proxies) onTell(from *peer, with envelope, message any) {
	switch value := message.(type) {
	case *messages.Withdrawn:
		a.questions.onWithdrawn(from, value)
	case messages.Notification:
		a.mail.Send(wire.PID(with.Ref), value)
	}
}

// watch watches the actors of a command whose end is told.
func (a *proxies) watch(cmd messages.Command) {
	eachActor(cmd, func(pid **actor.PID, _, tells bool) {
		if !tells {
			return
		}
		ref := wire.Ref(*pid)
		if _, is := a.watched[ref]; !is {
			a.watched[ref] = nil
			a.mail.Watch(*pid, a.self)
		}
	})
}

// introduce notes that a member gets to know the actors of a command whose end is told. Those that have ended since
// the command came are gone.
func (a *proxies) introduce(p *peer, cmd messages.Command) {
	eachActor(cmd, func(pid **actor.PID, _, tells bool) {
		if !tells {
			return
		}
		ref := wire.Ref(*pid)
		switch members, is := a.watched[ref]; {
		case !is:
			p.post(0, envelope{}, &gone{ref})
		case !slices.Contains(members, p):
			a.watched[ref] = append(members, p)
		}
	})
}

// onTerminated tells the members that know it that an actor here has terminated.
func (a *proxies) onTerminated(ref string) {
	for _, p := range a.watched[ref] {
		p.post(0, envelope{}, &gone{ref})
	}
	delete(a.watched, ref)
}

// endProxies removes the proxies of a member, and returns them: those who watch them are not told.
func (a *proxies) endProxies(p *peer) (ended []*proxy) {
	for _, one := range inOrder(p.proxies) {
		a.endProxy(one)
		ended = append(ended, one)
	}
	return ended
}

// lose ends the proxies of a member that is lost, and forgets what it knows.
func (a *proxies) lose(p *peer) {
	for ref := range inOrder(p.proxies) {
		a.onGone(p, ref)
	}
	for ref, members := range a.watched {
		a.watched[ref] = slices.DeleteFunc(members, func(other *peer) bool { return other == p })
	}
}
