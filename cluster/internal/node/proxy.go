package node

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// refs encodes PIDs as references: address and id. A decoded PID is a placeholder, which
// [node.adopt] replaces by a proxy.
type refs struct{}

// placeholder is the address of PIDs that stand for actors of other members.
const placeholder = "mcpactor.member"

// Ref returns the reference of an actor here.
func (refs) Ref(pid *actor.PID) string { return pid.Address + "/" + pid.Id }

// PID returns the placeholder of an actor elsewhere.
func (refs) PID(ref string) *actor.PID { return actor.NewPID(placeholder, ref) }

// pidOf returns the actor here that a reference is of.
func pidOf(ref string) *actor.PID {
	address, id, _ := strings.Cut(ref, "/")
	return actor.NewPID(address, id)
}

// proxy is a process that stands for an actor of another member: the owner of a scope or of an
// operation, a handler, or a subscriber. It ends with that actor, or with its member. The
// supervisor watches it as it watches actors here.
type proxy struct {
	peer     *peer
	ref      string
	pid      *actor.PID
	uses     int // commands without a reply that name it
	pinned   bool
	watchers map[string]*actor.PID
	lines    []*actor.PID // the sessions whose lines of stderr the subscriber has not handled
}

// Between nodes.
type (
	// tell is a message to an actor: progress, an update, a line, a withdrawn question.
	tell struct {
		Ref    string          `json:"ref"`
		Type   string          `json:"type"`
		Body   json.RawMessage `json:"body"`
		Number uint64          `json:"number,omitempty"` // of the question that is withdrawn
	}
	// ask is a question to a handler. The reply is the answer.
	ask struct {
		Ref  string          `json:"ref"`
		Type string          `json:"type"`
		Body json.RawMessage `json:"body"`
	}
	// gone says that an actor has terminated.
	gone struct {
		Ref string `json:"ref"`
	}
	// taken says that a subscriber has handled a line of stderr.
	taken struct {
		Ref string `json:"ref"`
	}
)

func init() {
	wire.Register[tell]("tell")
	wire.Register[ask]("ask")
	wire.Register[gone]("gone")
	wire.Register[taken]("taken")
}

// From processes to the node.
type (
	// proxied brings a message for an actor of another member.
	proxied struct {
		late
		of      *proxy
		message any
		sender  *actor.PID
	}
	// proxyWatched says that an actor here watches an actor elsewhere, or no longer.
	proxyWatched struct {
		late
		of      *proxy
		watcher *actor.PID
		ends    bool
	}
	// answered brings the answer of a handler here.
	answered struct {
		late
		number  uint64
		message any
	}
	// questionDue says that the time of a question is over.
	questionDue struct {
		late
		number uint64
	}
	// lineTaken tells a session that a line was handled.
	lineTaken struct {
		late
		by *actor.PID
	}
)

// TakenBy returns the proxy of the subscriber.
func (m *lineTaken) TakenBy() *actor.PID { return m.by }

// question is a question of another member to a handler here.
type question struct {
	peer    *peer
	remote  uint64          // its number there
	origin  messages.Origin // as the handler knows it
	handler *actor.PID
	pid     *actor.PID
	timer   timer
}

// ownQuestion is a question of a session here to a handler of another member.
type ownQuestion struct {
	peer *peer
	id   string
	pid  *actor.PID // takes the answer
}

// adopt replaces the placeholders of a command by proxies.
func (n *node) adopt(s *served) {
	switch cmd := s.cmd.(type) {
	case messages.Operation:
		h := cmd.Head()
		_, stays := cmd.(*messages.Subscribe)
		h.Handler = n.proxyOf(s, h.Handler, false)
		h.Subscriber = n.proxyOf(s, h.Subscriber, stays)
		h.Owner = n.proxyOf(s, h.Owner, false)
	case *messages.Bind:
		cmd.Owner, cmd.Handler = n.proxyOf(s, cmd.Owner, true), n.proxyOf(s, cmd.Handler, true)
		cmd.Subscriber = n.proxyOf(s, cmd.Subscriber, true)
	case *messages.Tail:
		cmd.Subscriber = n.proxyOf(s, cmd.Subscriber, true)
	}
}

// proxyOf returns the PID of the proxy for a placeholder.
func (n *node) proxyOf(s *served, pid *actor.PID, pinned bool) *actor.PID {
	if pid == nil {
		return nil
	}
	p := s.peer.proxies[pid.Id]
	if p == nil {
		p = &proxy{peer: s.peer, ref: pid.Id, watchers: map[string]*actor.PID{}}
		p.pid = n.open("proxy", func(message any, sender *actor.PID) any { return &proxied{of: p, message: message, sender: sender} }, func(message any) any {
			switch m := message.(type) {
			case *actor.Watch:
				return &proxyWatched{of: p, watcher: m.Watcher}
			case *actor.Unwatch:
				return &proxyWatched{of: p, watcher: m.Watcher, ends: true}
			}
			return nil
		})
		s.peer.proxies[pid.Id] = p
	}
	p.pinned = p.pinned || pinned
	p.uses++
	s.proxies = append(s.proxies, p)
	return p.pid
}

// endIfUnused ends a proxy that nothing names any longer.
func (n *node) endIfUnused(p *proxy) {
	if p.uses == 0 && !p.pinned && len(p.watchers) == 0 && p.peer.proxies[p.ref] == p {
		n.endProxy(p)
	}
}

// endProxy removes a proxy.
func (n *node) endProxy(p *proxy) {
	delete(p.peer.proxies, p.ref)
	n.close(p.pid)
}

// onGone ends the proxy of an actor that has terminated, and tells those who watch it.
func (n *node) onGone(from *peer, ref string) {
	if p := from.proxies[ref]; p != nil {
		n.endProxy(p)
		n.tellWatchers(p)
	}
}

// tellWatchers tells those who watch a proxy that it has ended.
func (n *node) tellWatchers(p *proxy) {
	for _, watcher := range inOrder(p.watchers) {
		n.mail.Terminated(watcher, p.pid, actor.TerminatedReason_Stopped)
	}
}

// onProxyWatched notes who watches a proxy.
func (n *node) onProxyWatched(msg *proxyWatched) {
	p := msg.of
	switch {
	case msg.ends:
		delete(p.watchers, msg.watcher.Id)
		n.endIfUnused(p)
	case p.peer.proxies[p.ref] != p: // it has ended
		n.mail.Terminated(msg.watcher, p.pid, actor.TerminatedReason_Stopped)
	default:
		p.watchers[msg.watcher.Id] = msg.watcher
	}
}

// onProxied passes a message on to the member of the actor.
func (n *node) onProxied(msg *proxied) {
	p := msg.of
	req, asks := msg.message.(messages.Request)
	switch there := p.peer.proxies[p.ref] == p; {
	case asks && !there:
		n.mail.Send(msg.sender, &messages.Refusal{Reason: clusterapi.NoHandler})
		return
	case asks:
		n.lastID++
		n.asking[n.lastID] = ownQuestion{p.peer, req.GetOrigin().Question, msg.sender}
		n.encode(req, encoded{to: p.peer, asks: n.lastID, handler: p.ref})
		return
	case !there:
		return
	}
	typ, body, err := wire.Encode(msg.message, refs{})
	if err != nil {
		n.cfg.Logger.Warn().Str("member", p.peer.label()).Err(err).Msg("message for an actor of another member cannot be sent")
		return
	}
	switch m := msg.message.(type) {
	case *messages.StderrLine:
		p.lines = append(p.lines, msg.sender)
		p.peer.post(0, &tell{Ref: p.ref, Type: typ, Body: body})
	case *messages.Withdrawn:
		for number, q := range inOrder(n.asking) {
			if q.peer == p.peer && q.id == m.Question {
				delete(n.asking, number)
				p.peer.post(0, &tell{p.ref, typ, body, number})
			}
		}
	default:
		if !p.peer.link.Crowded() { // otherwise it is missed, as an event is
			p.peer.post(0, &tell{Ref: p.ref, Type: typ, Body: body})
		}
	}
}

// onQuestionEncoded sends a question to the member of its handler, unless it was withdrawn.
func (n *node) onQuestionEncoded(msg encoded) {
	q, asking := n.asking[msg.asks]
	if !asking {
		return
	}
	if err := msg.send(msg.asks); err != nil {
		delete(n.asking, msg.asks)
		n.mail.Send(q.pid, &messages.Refusal{Reason: "the question cannot be sent: " + err.Error()})
	}
}

// onTell passes a message of another member on to an actor here.
func (n *node) onTell(from *peer, msg *tell) {
	value, err := wire.Decode(msg.Type, msg.Body, refs{})
	if err != nil {
		n.onUndecodable(from, 0, err)
		return
	}
	to := pidOf(msg.Ref)
	switch value := value.(type) {
	case *messages.StderrLine:
		if !n.isThere(to) {
			return
		}
		n.lines[msg.Ref] = append(n.lines[msg.Ref], from)
		n.mail.Request(to, value, n.self)
	case *messages.Withdrawn:
		n.onWithdrawn(from, msg.Number, value.Reason)
	case messages.Notification:
		n.mail.Send(to, value)
	}
}

// onWithdrawn ends a question of another member. One that is on its way is not put to its handler.
func (n *node) onWithdrawn(from *peer, remote uint64, reason string) {
	for number, q := range inOrder(n.asked) {
		if q.peer == from && q.remote == remote {
			n.withdrawQuestion(number, nil, reason)
			return
		}
	}
	from.cancelled.add(remote)
}

// withdrawQuestion ends a question that its handler has not answered, and tells the handler.
func (n *node) withdrawQuestion(number uint64, answer messages.Answer, reason string) {
	if q := n.asked[number]; q != nil {
		n.endQuestion(number, answer)
		n.mail.Send(q.handler, &messages.Withdrawn{Origin: q.origin, Reason: reason})
	}
}

// onTaken tells the member of a session that a line was handled.
func (n *node) onTaken(by *actor.PID) {
	ref := refs{}.Ref(by)
	from := n.lines[ref]
	if len(from) == 0 {
		return
	}
	if n.lines[ref] = from[1:]; len(from) == 1 {
		delete(n.lines, ref)
	}
	from[0].post(0, &taken{ref})
}

// onLineTaken tells the session that a line was handled.
func (n *node) onLineTaken(from *peer, ref string) {
	if p := from.proxies[ref]; p != nil && len(p.lines) > 0 {
		n.mail.Send(p.lines[0], &lineTaken{by: p.pid})
		p.lines = p.lines[1:]
	}
}

// onAsk puts a question of another member to a handler here.
func (n *node) onAsk(from *peer, remote uint64, ref string, req messages.Request) {
	if from.cancelled.take(remote) {
		return
	}
	handler := pidOf(ref)
	if n.mail.Gone(handler) {
		from.answer(remote, &messages.Refusal{Reason: clusterapi.NoHandler})
		return
	}
	n.lastID++
	number := n.lastID
	origin := req.GetOrigin()
	origin.Question = from.label() + "/" + origin.Question
	pid := n.open("question", func(message any, _ *actor.PID) any { return &answered{number: number, message: message} }, func(message any) any {
		if _, ended := message.(*actor.Terminated); ended {
			return &answered{number: number}
		}
		return nil
	})
	q := &question{peer: from, remote: remote, origin: *origin, handler: handler, pid: pid}
	q.timer = n.after(time.Until(origin.Deadline)+time.Second, &questionDue{number: number})
	n.asked[number] = q
	n.mail.Watch(handler, q.pid)
	n.mail.Request(handler, req, q.pid)
}

// onAnswered sends the answer of a handler to the member that has asked.
func (n *node) onAnswered(msg *answered) {
	n.endQuestion(msg.number, clusterapi.AnswerOf(msg.message))
}

// endQuestion removes a question. answer may be nil, if nobody waits for it.
func (n *node) endQuestion(number uint64, answer messages.Answer) {
	q := n.asked[number]
	if q == nil {
		return
	}
	q.timer.Stop()
	n.close(q.pid)
	n.mail.Unwatch(q.handler, q.pid)
	delete(n.asked, number)
	if answer != nil {
		n.encode(answer, encoded{to: q.peer, answers: q.remote})
	}
}

// dropQuestions ends the questions from and to a member that is lost.
func (n *node) dropQuestions(p *peer) {
	const reason = "the member has left the cluster"
	for number, q := range inOrder(n.asked) {
		if q.peer == p {
			n.withdrawQuestion(number, nil, reason)
		}
	}
	for number, q := range inOrder(n.asking) {
		if q.peer == p {
			delete(n.asking, number)
			n.mail.Send(q.pid, &messages.Refusal{Reason: reason})
		}
	}
}

// onAnswerEncoded sends an answer to the member that has asked.
func (n *node) onAnswerEncoded(msg encoded) {
	if err := msg.send(msg.answers | isReply); err != nil {
		msg.to.answer(msg.answers, &messages.Refusal{Reason: "the answer cannot be sent: " + err.Error()})
	}
}

// onAnswer gives the answer of a handler elsewhere to the session that has asked.
func (n *node) onAnswer(number uint64, value any) {
	q := n.asking[number]
	delete(n.asking, number)
	answer, ok := value.(messages.Answer)
	if !ok {
		answer = &messages.Refusal{Reason: "the question or its answer is not understood"}
	}
	n.mail.Send(q.pid, answer)
}

// named returns the actors that a command names and whose end concerns the members that get it. Some
// may be nil.
func named(cmd messages.Command) [3]*actor.PID {
	switch cmd := cmd.(type) {
	case *messages.Subscribe:
		return [3]*actor.PID{cmd.Owner, cmd.Subscriber}
	case messages.Operation:
		return [3]*actor.PID{cmd.Head().Owner}
	case *messages.Bind:
		return [3]*actor.PID{cmd.Owner, cmd.Handler, cmd.Subscriber}
	case *messages.Tail:
		return [3]*actor.PID{cmd.Subscriber}
	}
	return [3]*actor.PID{}
}

// watch watches the actors that a command names.
func (n *node) watch(cmd messages.Command) {
	for _, pid := range named(cmd) {
		if pid == nil {
			continue
		}
		if ref := (refs{}).Ref(pid); !n.watched[ref] {
			n.watched[ref] = true
			n.mail.Watch(pid, n.self)
		}
	}
}

// introduce notes that a member gets to know the actors that a command names. Those that have ended since
// the command came are gone.
func (n *node) introduce(p *peer, cmd messages.Command) {
	for _, pid := range named(cmd) {
		if pid == nil {
			continue
		}
		if ref := (refs{}).Ref(pid); n.watched[ref] {
			p.knows[ref] = true
		} else {
			p.post(0, &gone{ref})
		}
	}
}

// onTerminated tells the members that know it that an actor here has terminated.
func (n *node) onTerminated(who *actor.PID) {
	if who.Equal(n.cfg.Supervisor) {
		n.onSupervisorStopped()
	}
	ref := refs{}.Ref(who)
	delete(n.watched, ref)
	delete(n.lines, ref)
	n.cancelOwned(ref)
	for _, p := range inOrder(n.peers) {
		if p.knows[ref] {
			delete(p.knows, ref)
			p.post(0, &gone{ref})
		}
	}
}
