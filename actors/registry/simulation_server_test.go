package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// world is what is outside of the actors: the servers, and the bridge to them. It is used by whoever has
// the turn.
type world struct {
	s         *simulation
	servers   map[string]mcpbridge.Server // as the dialer knows them
	addresses map[string]*address
	sessions  []*served
	conns     []*simConn
	adoptable map[messages.Key]*control // second sessions that the next dial adopts
	live      map[messages.Key]int      // transports, but controls
	tenants   map[string]int            // the same, by tenant
	total     int
	dialing   map[string]int       // by server and address
	ranOn     map[string]*served   // the session that has run an operation last
	executed  map[string]int       // how often the server has run an operation
	mayRun    map[string]int       // how often it may have run, for all that the bridge knows
	sent      map[string]int       // how often the bridge was asked to
	causes    map[messages.Key]int // of faults that no event has reported
	changed   map[string]bool      // servers that a reload has changed or removed
	healed    bool                 // there are no faults any more
	rate      int                  // one request in so many has a fault
	dialRate  int                  // one dial in so many has
	stored    map[messages.Key]*mcpbridge.Record
	slowStore bool
}

// address is where servers are reached.
type address struct {
	name  string
	down  bool // nothing answers
	front bool // something else answers
}

// served is an MCP session as its server knows it.
type served struct {
	id     string
	key    messages.Key
	at     *address
	known  bool   // the server knows it
	told   bool   // a caller was told that it does not
	used   bool   // an operation has reached it
	stored bool   // it is from before the simulation
	excuse string // why it may be left at the end, or ""
}

// control is a second session that was opened to settle a doubt.
type control struct {
	of    *served
	ended func()
}

// addressOf returns where the server of a key is reached.
func (w *world) addressOf(srv mcpbridge.Server, key messages.Key) *address {
	name := srv.Command + srv.URL
	if srv.PerKey != nil {
		name += fmt.Sprint("/", len(key.Scope)%2)
	}
	if w.addresses[name] == nil {
		w.addresses[name] = &address{name: name}
	}
	return w.addresses[name]
}

// fault chooses one of n outcomes of what the world does. 0 is none.
func (w *world) fault(n, rate int) int {
	if w.healed || rate == 0 {
		return 0
	}
	return w.s.rarely(n, rate)
}

// What may become of a dial.
const (
	dialOpens = iota
	dialIsAnsweredFirst
	dialIsSlow
	dialHangs
	dialOpensTooLate
	dialFindsNobody
	dialIsUnauthorized
	dialFindsSomethingElse
	dialPanics
	dialIgnoresItsEnd
	dialIsSentAway
	dialFailsAfterTheAnswer
	dialOutcomes
)

// Dial opens a session.
func (w *world) Dial(ctx context.Context, req mcpbridge.DialRequest) (mcpbridge.Conn, error) {
	w.s.work(ctx, "dial of "+req.Key.String(), nil)
	srv, there := w.servers[req.Key.Server]
	if !there {
		return nil, &mcpbridge.Error{Class: mcpbridge.Invalid, Server: mcpbridge.Present, Detail: "no such server"}
	}
	at := w.addressOf(srv, req.Key)
	if srv.PerKey != nil && req.Resolved != nil {
		found := srv
		found.PerKey, found.URL = nil, at.name
		if err := req.Resolved(ctx, &found); err != nil {
			return nil, err
		}
		w.s.work(ctx, "dial of "+req.Key.String()+" at its address", nil)
	}
	where := srv.Name + "@" + at.name
	if w.adoptable[req.Key] != nil {
		where = "a connection that is adopted needs no permit: " + req.Key.String()
	}
	w.open(req, 1)
	if w.dialing[where]++; w.dialing[where] > w.s.maxDials && !req.Only && !w.changed[srv.Name] {
		w.s.violate("too many dials", "%d dials of %s at once", w.dialing[where], where)
	}
	conn, err := w.dial(ctx, req, at, where)
	w.dialing[where]--
	if err != nil {
		w.open(req, -1)
		return nil, err
	}
	return conn, nil
}

// dial opens a session, or fails.
func (w *world) dial(ctx context.Context, req mcpbridge.DialRequest, at *address, where string) (*simConn, error) {
	key := req.Key
	failure := func(class mcpbridge.Class, presence mcpbridge.Presence) error {
		return &mcpbridge.Error{Class: class, Server: presence, Detail: "the dial has failed", Err: ctx.Err()}
	}
	how := w.fault(dialOutcomes, w.dialRate)
	switch {
	case at.down && w.s.n(3) > 0:
		w.s.work(ctx, "dial of "+key.String()+" in an outage", func() bool { return ctx.Err() != nil || !at.down })
		if how = dialOpens; at.down || ctx.Err() != nil && w.fault(2, 2) == 0 {
			how = dialFindsNobody
		}
	case at.down, at.front:
		how = dialFindsNobody
	case ctx.Err() != nil && how != dialOpensTooLate:
		return nil, failure(mcpbridge.Unavailable, mcpbridge.Absent)
	}
	switch how {
	case dialIsAnsweredFirst, dialFailsAfterTheAnswer:
		if req.Answered != nil {
			req.Answered()
		}
		w.s.work(ctx, "answered dial of "+key.String(), nil)
		if how == dialFailsAfterTheAnswer || ctx.Err() != nil {
			return nil, failure(mcpbridge.Unavailable, mcpbridge.Present)
		}
	case dialIsSlow:
		w.s.work(ctx, "slow dial of "+key.String(), nil)
		if ctx.Err() != nil {
			return nil, failure(mcpbridge.Unavailable, mcpbridge.Absent)
		}
	case dialHangs, dialOpensTooLate:
		w.s.work(ctx, "hanging dial of "+key.String(), func() bool { return ctx.Err() != nil || w.healed })
		if how == dialHangs {
			return nil, failure(mcpbridge.Unavailable, mcpbridge.Absent)
		}
	case dialFindsNobody:
		return nil, failure(mcpbridge.Unavailable, mcpbridge.Absent)
	case dialIsUnauthorized:
		return nil, failure(mcpbridge.Unauthorized, mcpbridge.Present)
	case dialFindsSomethingElse:
		return nil, failure(mcpbridge.Protocol, mcpbridge.Strange)
	case dialPanics:
		w.open(req, -1) // Dial does not return
		w.dialing[where]--
		panic(planted)
	case dialIgnoresItsEnd:
		w.count(req, -1) // the supervisor does not wait for it
		w.dialing[where]--
		w.s.work(context.Background(), "deaf dial of "+key.String(), func() bool { return ctx.Err() != nil })
		w.s.linger(4*time.Second, "end of the deaf dial of "+key.String())
		w.count(req, 1)
		w.dialing[where]++
		return nil, failure(mcpbridge.Unavailable, mcpbridge.Absent)
	case dialIsSentAway:
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Absent, Detail: "503", RetryAfter: 3 * time.Second}
	}
	c := &simConn{w: w, key: key, req: req, n: len(w.conns)}
	switch known := w.resumes(req, at); {
	case known != nil:
		c.of, c.attached = known, true
	case req.Only:
		return nil, &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Detail: "404"}
	case w.adoptable[key] != nil && w.adoptable[key].of.at == at:
		c.of = w.adoptable[key].of
		w.adoptable[key].ended()
		delete(w.adoptable, key)
		w.s.crossed("a second session was adopted")
	default:
		c.of = &served{id: fmt.Sprint("session-", len(w.sessions)), key: key, at: at, known: true}
		w.sessions = append(w.sessions, c.of)
	}
	w.conns = append(w.conns, c)
	w.s.logf("%v is open for %s as %s", c, key, c.of.id)
	return c, nil
}

// resumes returns the session that a dial resumes, or nil.
func (w *world) resumes(req mcpbridge.DialRequest, at *address) *served {
	if req.Resume == nil {
		return nil
	}
	for _, of := range w.sessions {
		if of.id != req.Resume.SessionID {
			continue
		}
		if of.told && w.s.cfg.Store == nil && w.s.bugs == 0 {
			w.s.violate("an expired session is resumed", "%s of %s", of.id, req.Key)
		}
		if of.known && of.at == at {
			return of
		}
	}
	w.causes[req.Key]++ // that of the store has expired
	return nil
}

// open counts the transport of a dial. That which closes what others have left open belongs to no tenant.
func (w *world) open(req mcpbridge.DialRequest, by int) {
	w.count(req, by)
	key, tenant := req.Key, tenantOfScope(req.Key)
	if by < 0 {
		return
	}
	if w.live[key] > 1 {
		w.s.violate("two transports of a key", "%s has %d transports", key, w.live[key])
	}
	if most := w.s.cfg.MaxSessions; w.total > most {
		w.s.violate("the cap does not hold", "%d transports, and the cap is %d", w.total, most)
	}
	if most := w.s.cfg.MaxSessionsPerTenant; most > 0 && w.tenants[tenant] > most {
		w.s.violate("the quota of a tenant does not hold", "%d transports of %s, whose quota is %d", w.tenants[tenant], tenant, most)
	}
	total := w.total
	for of := range w.adoptable { // a second session uses the slot of its key
		if w.live[of] == 0 {
			total++
		}
	}
	if held := w.s.registry.gate.Sessions.Open; total > held {
		w.s.violate("a transport without a slot", "%d transports, and %d slots", total, held)
	}
}

// count counts the transport of a dial, and checks nothing.
func (w *world) count(req mcpbridge.DialRequest, by int) {
	w.live[req.Key] += by
	w.total += by
	if !req.Only {
		w.tenants[tenantOfScope(req.Key)] += by
	}
}

// simConn is a connection of the bridge.
type simConn struct {
	w        *world
	key      messages.Key
	n        int
	req      mcpbridge.DialRequest
	of       *served
	attached bool
	listed   bool // the tools
	broken   bool
	ended    bool // closed or detached
	told     bool // of the end
	faulty   bool // there was a cause to restart its session
	unheard  bool
	running  int
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
	c.broken = true
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
	_, isOpen := op.(*messages.Open)
	_, isCall := op.(*messages.CallTool)
	s.work(ctx, label, nil)
	if isOpen {
		return c.listen(ctx, label)
	}
	if isCall && id != "" {
		if c.running++; c.running > s.cfg.MaxInFlight && !w.changed[c.key.Server] {
			s.violate("too many calls", "%v runs %d calls", c, c.running)
		}
		w.sent[id]++
		defer func() { c.running-- }()
	}
	c.of.used = c.of.used || isCall && id != "" // else it may be set up
	refusal := func(class mcpbridge.Class, fate mcpbridge.Fate, sent bool) error {
		return &mcpbridge.Error{Class: class, Session: fate, Sent: sent, Detail: "refused"}
	}
	defer func() {
		if _, ping := op.(*messages.Ping); ping && ctx.Err() != nil {
			c.blame()
		}
	}()
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
		if isCall && s.n(2) == 1 {
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
		s.work(context.Background(), "deaf "+label, func() bool { return ctx.Err() != nil || w.healed })
		s.linger(4*time.Second, "end of deaf "+label)
		return nil, cut()
	}
	c.unheard = false
	c.execute(op)
	switch how {
	case requestIsAnsweredLater:
		s.work(ctx, "answer of "+label, nil)
	case requestHangs:
		s.work(ctx, "hanging "+label, func() bool { return ctx.Err() != nil || w.healed || c.gone() || !c.of.known })
	case requestFails:
		return nil, refusal(mcpbridge.ServerError, mcpbridge.Alive, true)
	case requestAsks:
		if c.req.Ask != nil {
			var of messages.Operation
			if s.n(2) == 1 {
				of = op
			}
			c.req.Ask(ctx, &messages.Elicit{Params: &mcp.ElicitParams{}}, of)
			s.work(ctx, "answer after a question of "+label, nil)
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
		c.w.s.logf("the server runs %s", id)
	}
}

// result returns the result of an operation.
func (c *simConn) result(op messages.Operation) messages.Result {
	switch op.(type) {
	case *messages.CallTool:
		return &messages.ToolResult{Result: &mcp.CallToolResult{}}
	case *messages.ListTools:
		c.listed = true
		return &messages.ToolList{Result: &mcp.ListToolsResult{}}
	case *messages.ReadResource:
		return &messages.ResourceContents{Result: &mcp.ReadResourceResult{}}
	}
	return &messages.Ack{}
}

// listen waits until the server is heard.
func (c *simConn) listen(ctx context.Context, label string) (messages.Result, error) {
	c.w.s.work(ctx, "listening "+label, func() bool { return ctx.Err() != nil || !c.of.at.front || c.gone() })
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
	if c.req.Admit == nil || c.Resume() == nil || w.adoptable[c.key] != nil || c.control != nil {
		return doubt
	}
	opened, ended, err := c.req.Admit(ctx)
	if err != nil {
		return doubt
	}
	w.s.work(ctx, "second session of "+label, nil)
	opened()
	w.s.crossed("a second session was opened")
	if w.s.registry.entries[c.key] == nil || w.s.registry.entries[c.key].current == nil {
		w.s.crossed("a second session of a session that drains")
	}
	w.s.work(ctx, "answer of the second session of "+label, nil)
	if c.gone() || ctx.Err() != nil || w.s.n(2) == 0 || w.adoptable[c.key] != nil {
		ended()
		return doubt
	}
	c.control = &control{&served{id: fmt.Sprint("session-", len(w.sessions)), key: c.key, at: c.of.at, known: true}, ended}
	w.sessions = append(w.sessions, c.control.of)
	w.adoptable[c.key] = c.control
	w.s.lingering++
	go func(k *control) {
		time.Sleep(connectTimeout)
		w.s.work(context.Background(), "end of the second session of "+label, nil)
		w.s.lingering--
		w.endControl(c.key, k)
	}(c.control)
	c.of.known = false
	c.blame()
	return &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Gone, Sent: true, Detail: "the session is dead"}
}

// endControl ends a second session, unless a dial has adopted it.
func (w *world) endControl(key messages.Key, k *control) {
	if k != nil && w.adoptable[key] == k {
		delete(w.adoptable, key)
		k.of.known = false
		k.ended()
	}
}

// Hint says whether a tool is safe, once the tools are listed.
func (c *simConn) Hint(tool string) (safe, known bool) {
	return c.listed && strings.HasSuffix(tool, "/safe"), c.listed
}

// Info describes the session.
func (c *simConn) Info() mcpbridge.Info {
	return mcpbridge.Info{Server: &mcp.InitializeResult{}, Attached: c.attached}
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
		c.w.open(c.req, -1)
		if c.Resume() == nil {
			c.of.known = false
		}
	}
}

// Detach ends the transport.
func (c *simConn) Detach(ctx context.Context) error {
	c.w.s.work(ctx, "detaching of "+c.String(), nil)
	c.end()
	return nil
}

// Close ends the session, and the second one beside it.
func (c *simConn) Close(ctx context.Context) error {
	w := c.w
	w.s.work(ctx, "closing of "+c.String(), nil)
	w.endControl(c.key, c.control)
	how := w.fault(4, w.rate)
	if how == 3 {
		w.s.work(ctx, "hanging closing of "+c.String(), func() bool { return ctx.Err() != nil || w.healed })
	}
	if how == 1 || how == 2 {
		c.end()
		if !c.of.used {
			c.of.excuse = "whoever has closed it could not know what to do about the error"
		}
		w.s.logf("%v could not be closed", c)
		if how == 2 {
			panic(planted)
		}
		return &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: "closing has failed"}
	}
	c.end()
	c.of.known = false
	return nil
}

// The store. Load, Save, Delete and Keys may take time, and fail.

func (w *world) store(ctx context.Context, what string) error {
	w.s.work(ctx, what, nil)
	if w.slowStore && !w.healed && w.s.rarely(2, 4) == 1 {
		w.s.work(ctx, "slow "+what, func() bool { return ctx.Err() != nil || w.healed })
	}
	if w.fault(2, w.rate) == 1 || ctx.Err() != nil {
		for _, of := range w.sessions {
			if of.stored {
				of.excuse = "the store has failed"
			}
		}
		return errors.New("the store has failed")
	}
	return nil
}

func (w *world) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	if err := w.store(ctx, "load of "+key.String()); err != nil {
		return nil, err
	}
	if w.stored[key] == nil {
		return nil, nil
	}
	record := *w.stored[key]
	return &record, nil
}

func (w *world) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	err := w.store(ctx, "save of "+key.String())
	if err == nil {
		w.stored[key] = record
	}
	return err
}

func (w *world) Delete(ctx context.Context, key messages.Key) error {
	return errors.New("is not called")
}

func (w *world) Keys(ctx context.Context) (keys []messages.Key, err error) {
	if err := w.store(ctx, "list of the store"); err != nil {
		return nil, err
	}
	for key := range w.stored {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, messages.Key.Compare)
	return keys, nil
}
