package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// simOpening is what a dial has left that was given up. Its server opens a session when it answers.
type simOpening struct {
	dial.Conn  // nil: only Resume and Close are called
	p          *supervisor
	of         *served
	unanswered bool // for ever
}

// Resume returns nil.
func (*simOpening) Resume() *mcpbridge.Resume { return nil }

// Close waits for the answer of the server, and ends the session.
func (o *simOpening) Close(ctx context.Context) error {
	w, name := o.p.s, o.of.id+" of a dial that was given up"
	how := w.fault(4, w.rate)
	o.p.work(ctx, "closing of "+name, func() bool { return ctx.Err() != nil || w.healed || how != 1 })
	switch {
	case o.unanswered || how == 2 && o.of.known && !w.healed:
		o.unanswered, o.of.excuse = true, "nobody can know whether it was opened"
		return dial.ErrUnanswered
	case how == 1 && !w.healed:
		o.of.excuse = "the connection ends it when the server answers"
		return dial.ErrOpening
	case how != 0 && !w.healed:
		w.Logf("%s could not be closed", name)
		return &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: "503"}
	}
	o.of.known = false
	w.Crossed("the session of a dial that was given up was ended")
	return nil
}

// simConn is a connection of the bridge.
type simConn struct {
	w        *world
	p        *supervisor
	key      messages.Key
	n        int
	req      dial.Request
	of       *served
	attached bool
	listed   bool // the tools
	broken   bool
	closing  bool // it settles no doubt any more
	ended    bool // closed or detached
	told     bool // of the end
	faulty   bool // there was a cause to restart its session
	unheard  bool
	running  int
	pings    int // that are not answered
	control  *control
}

func (c *simConn) String() string { return fmt.Sprint("conn-", c.n) }

// gone reports whether the connection has ended.
func (c *simConn) gone() bool { return c.broken || c.ended }

// blame notes that the session may restart because of this connection.
func (c *simConn) blame() {
	if !c.faulty {
		c.faulty = true
		c.w.causes[c.key]++
	}
}

// breakOff breaks the connection. The server of a command ends with it.
func (c *simConn) breakOff(told bool) {
	if c.gone() {
		return
	}
	c.blame()
	c.broken, c.of.told = true, false // the session may be told of this first
	if c.Resume() == nil {
		c.of.known = false
	}
	if told && !c.told {
		c.told = true
		go c.req.Down(c.lost())
	}
}

func (c *simConn) lost() *mcpbridge.Error {
	return &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Sent: true, Detail: "connection reset"}
}

// What may become of a request.
const (
	requestIsAnswered = iota
	requestIsAnsweredLater
	requestHangs
	requestIsLostOnItsWay
	answerIsLost
	requestIsUnprocessed
	requestIsRefused
	requestFails
	requestHasADoubt
	requestPanics
	requestIgnoresItsEnd
	requestAsks
	requestOutcomes
)

// Do runs an operation.
func (c *simConn) Do(ctx context.Context, op messages.Operation) (messages.Result, error) {
	w, s, id := c.w, c.w.s, op.RequestID()
	label := fmt.Sprintf("%v %s %s", c, op.Method(), id)
	if of, is := ctx.Value(valueKey{}).(string); is && of != id {
		s.violate("the context of another caller", "%s has that of %s", id, of)
	}
	if asks, _ := contract.AsksCatalogue(op); asks {
		s.listings[c.key]++
	}
	_, isOpen := op.(*messages.Open)
	_, isCall := op.(*messages.CallTool)
	if _, isPing := op.(*messages.Ping); isPing {
		c.pings++
		defer func() {
			if c.pings--; ctx.Err() != nil {
				c.blame()
			}
		}()
	}
	c.p.work(ctx, label, nil)
	if isOpen {
		return c.listen(ctx, label)
	}
	if isCall && id != "" {
		if c.running++; c.running > c.p.cfg.MaxInFlight && !w.changed[c.key.Server] {
			s.violate("too many calls", "%v runs %d calls", c, c.running)
		}
		w.sent[id]++
		defer func() { c.running-- }()
	}
	c.of.used = c.of.used || isCall && id != "" // else it may be set up
	refusal := func(class mcpbridge.Class, fate mcpbridge.Fate, sent bool) error {
		return &mcpbridge.Error{Class: class, Session: fate, Sent: sent, Detail: "refused"}
	}
	cut := func() error {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return &mcpbridge.Error{Class: mcpbridge.Deadline, Sent: true}
		}
		return &mcpbridge.Error{Class: mcpbridge.Cancelled, Sent: true}
	}
	how := w.fault(requestOutcomes, w.rate)
	switch {
	case c.gone():
		return nil, &mcpbridge.Error{Class: mcpbridge.NotSent, Session: mcpbridge.Broken, Withheld: true, Detail: "the connection is gone"}
	case c.unheard && c.of.at.front:
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Session: mcpbridge.Unheard, Withheld: true, Detail: "502"}
	case ctx.Err() != nil:
		return nil, cut()
	case c.of.at.front:
		c.unheard = true
		if isCall && s.N(2) == 1 {
			c.execute(op)
		}
		return nil, refusal(mcpbridge.ServerError, mcpbridge.Unheard, true)
	case !c.of.known:
		c.blame()
		c.of.told = true
		return nil, refusal(mcpbridge.Expired, mcpbridge.Gone, true)
	case how == requestIsLostOnItsWay:
		w.mayRun[id]++
		c.breakOff(false)
		return nil, c.lost()
	case how == requestIsUnprocessed:
		return nil, refusal(mcpbridge.NotSent, mcpbridge.Alive, false)
	case how == requestIsRefused:
		return nil, &mcpbridge.Error{Class: mcpbridge.Invalid, Sent: true, Own: true, Status: 200, Code: -32601, Detail: "no such method"}
	case how == requestPanics:
		panic(planted)
	case how == requestIgnoresItsEnd:
		c.blame()
		c.execute(op)
		c.p.work(context.Background(), "deaf "+label, func() bool { return ctx.Err() != nil || w.healed })
		c.p.linger(4*time.Second, "end of deaf "+label)
		return nil, cut()
	}
	c.unheard = false
	c.execute(op)
	switch how {
	case requestIsAnsweredLater:
		c.p.work(ctx, "answer of "+label, nil)
	case requestHangs:
		c.p.work(ctx, "hanging "+label, func() bool { return ctx.Err() != nil || w.healed || c.gone() || !c.of.known })
	case requestFails:
		return nil, refusal(mcpbridge.ServerError, mcpbridge.Alive, true)
	case requestAsks:
		if c.req.Ask != nil {
			var of messages.Operation
			if s.N(2) == 1 {
				of = op
			}
			c.req.Ask(ctx, &messages.Elicit{Params: &mcp.ElicitParams{}}, of)
			c.p.work(ctx, "answer after a question of "+label, nil)
		}
	case requestHasADoubt:
		if err := c.settle(ctx, label); err != nil {
			return nil, err
		}
	}
	switch {
	case c.gone(), how == answerIsLost:
		c.breakOff(false)
		return nil, c.lost()
	case ctx.Err() != nil:
		return nil, cut()
	}
	return c.result(op), nil
}

// execute counts that the server has run an operation.
func (c *simConn) execute(op messages.Operation) {
	if id := op.RequestID(); id != "" {
		c.w.executed[id]++
		c.w.mayRun[id]++
		c.w.ranOn[id] = c.of
		c.w.s.Logf("the server runs %s", id)
	}
}

// result returns the result of an operation.
func (c *simConn) result(op messages.Operation) messages.Result {
	switch op.(type) {
	case *messages.CallTool:
		return &messages.ToolResult{Result: &mcp.CallToolResult{}}
	case *messages.ListTools:
		c.listed = true
		return &messages.ToolList{Result: &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: c.of.at.thing()}}}}
	case *messages.ListPrompts:
		return &messages.PromptList{Result: &mcp.ListPromptsResult{Prompts: []*mcp.Prompt{{Name: c.of.at.thing()}}}}
	case *messages.Custom:
		return &messages.CustomResult{}
	case *messages.ReadResource:
		return &messages.ResourceContents{Result: &mcp.ReadResourceResult{}}
	}
	return &messages.Ack{}
}

// listen waits until the server is heard.
func (c *simConn) listen(ctx context.Context, label string) (messages.Result, error) {
	c.p.work(ctx, "listening "+label, func() bool { return ctx.Err() != nil || !c.of.at.front || c.gone() })
	switch {
	case c.gone():
		return nil, &mcpbridge.Error{Class: mcpbridge.NotSent, Session: mcpbridge.Broken, Withheld: true}
	case c.of.at.front:
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Session: mcpbridge.Unheard, Withheld: true, Detail: "502"}
	}
	c.unheard = false
	return &messages.SessionInfo{}, nil
}

// settle settles whether the session is dead, by a second one. That of a command has none.
func (c *simConn) settle(ctx context.Context, label string) error {
	w := c.w
	doubt := &mcpbridge.Error{Class: mcpbridge.ServerError, Sent: true, Doubt: true, Detail: "refused in doubt"}
	if c.req.Admit == nil || c.Resume() == nil || c.closing || c.p.adoptable[c.key] != nil || c.control != nil {
		return doubt
	}
	opened, tell, err := c.req.Admit(ctx)
	if err != nil {
		return doubt
	}
	c.p.controls++
	c.p.beside[c.key]++
	ended := func() {
		c.p.controls--
		c.p.beside[c.key]--
		c.p.orphaned[c.key] = true
		tell()
	}
	c.p.work(ctx, "second session of "+label, nil)
	opened()
	c.p.controlled[c.key] = true
	w.s.Crossed("a second session was opened")
	if c.p.registry.table.Entry(c.key) == nil || c.p.registry.table.Entry(c.key).Current == nil {
		w.s.Crossed("a second session of a session that drains")
	}
	c.p.work(ctx, "answer of the second session of "+label, nil)
	if c.gone() || c.closing || ctx.Err() != nil || w.s.N(2) == 0 || c.p.adoptable[c.key] != nil {
		ended()
		return doubt
	}
	c.control = &control{w.newSession(c.p, c.key, c.of.at), ended}
	c.p.adoptable[c.key] = c.control
	c.p.lingering++
	go func(k *control) {
		time.Sleep(connectTimeout)
		c.p.work(context.Background(), "end of the second session of "+label, nil)
		c.p.lingering--
		c.p.endControl(c.key, k)
	}(c.control)
	c.of.known = false
	c.blame()
	return &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone, Sent: true, Detail: "the session is dead"}
}

// endControl ends a second session, unless a dial has adopted it.
func (p *supervisor) endControl(key messages.Key, k *control) {
	if k != nil && p.adoptable[key] == k {
		delete(p.adoptable, key)
		k.of.known = false
		k.ended()
	}
}

// Hint says whether a tool is safe, once the tools are listed.
func (c *simConn) Hint(tool string) (safe, known bool) {
	return c.listed && strings.HasSuffix(tool, "/safe"), c.listed
}

// Info describes the session.
func (c *simConn) Info() dial.Info {
	return dial.Info{Server: &mcp.InitializeResult{}, Attached: c.attached}
}

// Resume returns how to resume the session. That of a command ends with its process.
func (c *simConn) Resume() *mcpbridge.Resume {
	if strings.HasPrefix(c.of.at.name, "command") {
		return nil
	}
	return resumeOf(c.of)
}

func resumeOf(of *served) *mcpbridge.Resume {
	return &mcpbridge.Resume{SessionID: of.id, Endpoint: of.at.name, Server: &mcp.InitializeResult{ProtocolVersion: "2025-06-18"}}
}

// end ends the transport.
func (c *simConn) end() {
	if !c.ended {
		c.ended = true
		c.p.open(c.req, -1)
		if c.Resume() == nil {
			c.of.known = false
		}
	}
}

// Detach ends the transport.
func (c *simConn) Detach(ctx context.Context) error {
	c.p.work(ctx, "detaching of "+c.String(), nil)
	c.closing = true
	c.end()
	return nil
}

// Close ends the session, and the second one beside it.
func (c *simConn) Close(ctx context.Context) error {
	w := c.w
	c.p.work(ctx, "closing of "+c.String(), nil)
	c.closing = true
	c.p.endControl(c.key, c.control)
	how := w.fault(4, w.rate)
	if how == 3 {
		c.p.work(ctx, "hanging closing of "+c.String(), func() bool { return ctx.Err() != nil || w.healed })
	}
	if how == 1 || how == 2 {
		c.end()
		if !c.of.used {
			c.of.excuse = "whoever has closed it could not know what to do about the error"
		}
		w.s.Logf("%v could not be closed", c)
		if how == 2 {
			panic(planted)
		}
		return &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: "closing has failed"}
	}
	c.end()
	c.of.known = false
	return nil
}
