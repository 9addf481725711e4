package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/identity"
	"github.com/mcpactor/mcpactor/internal/introduction"
	"github.com/mcpactor/mcpactor/messages"
)

// newID returns a part of a name that no other client has.
func newID() string { return strings.ToLower(rand.Text()) }

// scope is a scope of the supervisor with the clients that call in it. They share its sessions. So its servers are told the same of
// all of them.
type scope struct {
	g       *Gateway
	name    string
	said    string         // identifies what its clients say of themselves, and whom the scope belongs to
	owner   *actor.PID     // gets the questions of servers
	another *actor.PID     // to which the scope belongs, or nil
	bound   func() error   // binds the scope, once
	bind    *messages.Bind // the binding
	binds   atomic.Bool    // it was sent

	pending sync.Map // by question of a server: the context.CancelFunc that withdraws it

	// The mutex of the gateway guards these.
	clients []*client
	ends    bool          // with its last client
	over    bool          // it has ended with another
	ended   chan struct{} // closed when the scope has ended after its last client; nil while it has clients
}

// newScope returns the scope of a client, whose capabilities are those that servers are told.
func (g *Gateway) newScope(c *client, said string, capabilities *mcp.ClientCapabilities) *scope {
	s := &scope{g: g, name: c.scope, said: said, another: c.offer.scope.Owner}
	s.bind = &messages.Bind{
		Scope: s.name, Owner: s.another, Capabilities: capabilities,
		Introduction: &messages.Introduction{ProtocolVersion: c.version, ClientInfo: c.info, Initialize: c.told},
	}
	s.owner = g.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &owner{s} }))
	if s.bind.Owner == nil && c.offer.scope.Ends {
		s.bind.Owner = s.owner
	}
	if identity.OfCapabilities(capabilities) != identity.OfCapabilities(&mcp.ClientCapabilities{}) { // or else nobody may ask
		s.bind.Handler = s.owner
	} else if s.bind.Owner == nil { // the binding must belong to somebody
		s.bind.Subscriber = s.owner
	}
	s.bound = sync.OnceValue(func() error {
		if err := s.canAsk(c); err != nil {
			return err
		}
		s.binds.Store(true)
		_, err := g.do.Do(g.life, s.bind)
		return err
	})
	return s
}

// identityOf identifies what a client says of itself.
func identityOf(c *client, capabilities *mcp.ClientCapabilities) string {
	told, err := json.Marshal([]any{c.version, c.info, c.told, c.offer.scope.Owner})
	if err != nil {
		return newID()
	}
	return identity.OfCapabilities(capabilities) + string(told)
}

// join opens the scope of a client, unless another client has opened it.
func (g *Gateway) join(c *client, capabilities *mcp.ClientCapabilities) error {
	said := identityOf(c, capabilities)
	for {
		g.mu.Lock()
		s := g.scopes[c.scope]
		switch {
		case g.life.Err() != nil:
			g.mu.Unlock()
			return errClosed
		case s == nil:
			s = g.newScope(c, said, capabilities)
			g.scopes[c.scope] = s
		case s.ended != nil:
			g.mu.Unlock()
			select {
			case <-s.ended:
			case <-c.ctx.Done():
				return errGone
			}
			continue
		case s.said != said:
			g.mu.Unlock()
			return fmt.Errorf("scope %q has a client that says something else of itself (revision, name, capabilities, owner): "+
				"use the same options for all clients of a scope, or another scope", c.scope)
		}
		s.clients = append(s.clients, c)
		g.countShared(c.servers(), 1)
		s.ends = s.ends || c.offer.scope.Ends
		c.of = s
		g.mu.Unlock()
		err := s.bound()
		if err != nil {
			s.part(c, false)
		}
		return err
	}
}

// canAsk returns an error if a session of the scope was opened before the scope had its clients, and will not ask them what they can
// be asked: it keeps what it was told.
func (s *scope) canAsk(c *client) error {
	can := s.bind.Capabilities
	if isAsked := can.Elicitation != nil || can.Sampling != nil; !isAsked || c.offer.scope.Name == "" { // all clients of the SDK have roots
		return nil
	}
	declared := introduction.Declared(identity.OfCapabilities(can), s.bind.Introduction)
	for _, one := range c.servers() {
		if one.isShared() {
			continue
		}
		status := one.check(c.ctx)
		if status != nil && status.State == messages.StateReady && status.Declared != declared {
			return fmt.Errorf("the session of server %q in scope %q was opened for somebody else, and would not ask this client: "+
				"connect before any other call in the scope, or use another scope", one.name, s.name)
		}
	}
	return nil
}

// countShared counts the sessions in other scopes that servers of a client have. The caller holds the mutex.
func (g *Gateway) countShared(servers []*served, n int) {
	for _, s := range servers {
		if !s.isShared() {
			continue
		}
		scope := s.key().Scope
		if g.shared[scope] += n; g.shared[scope] == 0 {
			delete(g.shared, scope)
		}
	}
}

// part removes a client. With the last one goes what the scope has bound, and unless that is away, what it holds.
func (s *scope) part(c *client, away bool) {
	g := s.g
	g.mu.Lock()
	before := len(s.clients)
	s.clients = slices.DeleteFunc(slices.Clone(s.clients), func(other *client) bool { return other == c })
	if len(s.clients) < before {
		g.countShared(c.servers(), -1)
	}
	isLast, isOver := before > 0 && len(s.clients) == 0, s.ends || s.over
	if isLast {
		s.ended = make(chan struct{})
	}
	g.mu.Unlock()
	if !isLast {
		return
	}
	if s.binds.Load() {
		s.end(away)
		if isOver && !away {
			s.releaseHandles(c.servers())
		}
	}
	g.system.Root.Stop(s.owner)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.scopes, s.name)
	close(s.ended)
}

// end ends the scope after its last client, if it is to, or else its binding.
func (s *scope) end(away bool) {
	if s.ends {
		s.do(&messages.CloseScope{Scope: s.name, Now: true, KeepHandles: away})
	}
	if !s.ends || away { // or else the end of the owner would end the scope
		s.do(&messages.Bind{Scope: s.name, Owner: s.another})
	}
}

// releaseHandles releases what clients that have left hold in sessions that others share.
func (s *scope) releaseHandles(servers []*served) {
	released := map[string]bool{}
	for _, one := range servers {
		holder, holds := one.holder.Get(messages.HolderAttribute)
		if scope := one.key().Scope; holds && !released[scope] {
			released[scope] = true
			s.do(&messages.ReleaseHandles{Scope: scope, Holder: holder})
		}
	}
}

// do runs a command of the end of the scope.
func (s *scope) do(end messages.Command) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*closePatience)
	defer cancel()
	if _, err := s.g.do.Do(ctx, end); err != nil && !errors.Is(err, messages.CodeClosed) {
		s.g.log.Warn().Str("scope", s.name).Err(err).Msg("scope of a client was not ended")
	}
}

// The reasons why nobody is asked.
var (
	errNobody = errors.New("no client calls the server")
	errWhich  = errors.New("several clients share the session, and it is not known for which of them the server asks")
)

// hasOthers reports whether the scope has several clients.
func (s *scope) hasOthers() bool {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	return len(s.clients) > 1
}

// leave ends the clients of the scope, which has ended with the actor that it belonged to.
func (s *scope) leave() {
	s.g.mu.Lock()
	s.over = true
	clients := slices.Clone(s.clients)
	s.g.mu.Unlock()
	for _, c := range clients {
		c.offer.close()
	}
}

// asked returns the client that a server asks: the one for whose request it asks, or the only one that can have called the server.
func (s *scope) asked(of *messages.Origin) (*client, error) {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	var found []*client
	for _, c := range s.clients {
		if c.requestOf(of.Operation.ID) != nil {
			return c, nil
		}
		if c.ctx.Err() == nil && (c.set != nil || c.server(of.Key.Server) != nil) { // a toolset may have got the server later
			found = append(found, c)
		}
	}
	switch len(found) {
	case 0:
		return nil, errNobody
	case 1:
		return found[0], nil
	}
	return nil, errWhich
}

// owner is the actor to which the questions of servers to a scope go, and the scope itself if it ends with its last client. It has
// the client asked.
type owner struct{ of *scope }

// Receive takes the questions of servers.
func (o *owner) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		if o.of.another != nil {
			c.Watch(o.of.another)
		}
	case *actor.Terminated: // the scope has ended
		go o.of.leave()
	case *messages.Withdrawn:
		if withdraw, asked := o.of.pending.Load(m.Question); asked {
			withdraw.(context.CancelFunc)()
		}
	case messages.Request:
		origin, sender, root := m.GetOrigin(), c.Sender(), c.ActorSystem().Root
		asked, err := o.of.asked(origin)
		if err != nil {
			root.Send(sender, &messages.Refusal{Reason: err.Error()})
			return
		}
		ctx, withdraw := context.WithDeadline(asked.ctx, origin.Deadline)
		o.of.pending.Store(origin.Question, withdraw)
		go func() {
			defer withdraw()
			root.Send(sender, asked.answer(ctx, m))
			o.of.pending.Delete(origin.Question)
		}()
	}
}

// answer passes a question on to the client, and returns its answer.
func (c *client) answer(ctx context.Context, m messages.Request) messages.Answer {
	of, s, ask := c.requestOf(m.GetOrigin().Operation.ID), c.server(m.GetOrigin().Key.Server), asking(c.ask)
	if c.isStateless {
		ask = c.inCall(m.GetOrigin())
	}
	var answer messages.AsSent
	var err error
	switch m := m.(type) {
	case *messages.Elicit:
		if answer.Verbatim, err = ask(ctx, "elicitation/create", c.publicTasks(s, m.Verbatim), of); err == nil {
			answer.Verbatim = c.ownTasks(s, answer.Verbatim)
			return &messages.Elicited{AsSent: answer}
		}
	case *messages.Sample:
		if answer.Verbatim, err = ask(ctx, "sampling/createMessage", c.publicTasks(s, m.Verbatim), of); err == nil {
			answer.Verbatim = c.ownTasks(s, answer.Verbatim)
			return &messages.Sampled{AsSent: answer}
		}
	case *messages.ListRoots:
		result := new(mcp.ListRootsResult)
		if answer.Verbatim, err = ask(ctx, "roots/list", nil, of); err == nil {
			if err = json.Unmarshal(answer.Verbatim, result); err == nil {
				return &messages.Roots{Roots: result.Roots}
			}
		}
	default:
		err = errors.New("the question is not known")
	}
	return &messages.Refusal{Reason: err.Error()}
}

// ask asks the client, as soon as it may be asked: a server that starts for initialize may ask before its response.
func (c *client) ask(ctx context.Context, method string, params json.RawMessage, of *mcpserver.Request) (json.RawMessage, error) {
	select {
	case <-c.mayAsk:
		return c.Ask(ctx, method, params, of)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
