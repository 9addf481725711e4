package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/gateway/internal/rounds"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// stateTime is how long a client may take for the next round of a call whose server keeps nothing for it.
	stateTime = 24 * time.Hour
	// roundTime is how long a call waits for the next round. After that it is cancelled.
	roundTime = 15 * time.Minute
	// resultTime is how long the result of such a call is kept for a client that sends its last round again.
	resultTime = 2 * time.Minute
)

// state is what the requestState of a result has, sealed. It is either that of a server of protocol 2026-07-28, or names a call that
// waits here.
type state struct {
	Own     *string   `json:"own,omitempty"`  // the requestState of the server, if it has given one
	Call    string    `json:"call,omitempty"` // the call that waits
	Number  int       `json:"number,omitempty"`
	Expires time.Time `json:"expires"`
}

// purpose says to what a requestState belongs: the principal, and the request with its parameters.
func (c *client) purpose(r *mcpserver.Request) string {
	params, err := mcpserver.Encode(r.Members().Without("_meta", "requestState", "inputResponses"))
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(mcpserver.Canonical(params))
	return strings.Join([]string{"round", c.Principal, r.Method, string(sum[:])}, "\n")
}

// asks returns the result that asks a client for input. next is sealed as its requestState.
func (c *client) asks(r *mcpserver.Request, result mcpserver.Object, next state) (any, error) {
	text, err := c.g.key.Seal(c.purpose(r), next)
	if err != nil {
		return nil, err
	}
	return result.With("resultType", "input_required").With("requestState", text), nil
}

// outcome is how a call has ended.
type outcome struct {
	result any
	err    error
}

// waitingCall is a call that is not bound to one request of its client: it may take several rounds. Its methods may be called from any
// goroutine.
type waitingCall struct {
	c      *client
	id     string
	r      *mcpserver.Request // detached
	cancel context.CancelCauseFunc

	mu        sync.Mutex
	call      rounds.Call[outcome]
	answers   map[string]chan json.RawMessage // by the key of the question
	changed   chan struct{}                   // closed when the call has changed
	attached  int                             // how many requests wait for a reply
	idleSince time.Time                       // when there were none
	expires   *time.Timer                     // ends the wait for the next round; nil before the first question
	release   func()                          // of the client
}

// callKey is the key of the waiting call in the context of a request.
type callKey struct{}

// The reasons why a call, or a question, ends.
var (
	errNoRound = errors.New("the client has not answered the question in time")
	errNoCall  = errors.New("it is not known for which call the server asks")
)

// inRounds answers a request whose result may ask for input.
func (c *client) inRounds(r *mcpserver.Request) (any, error) {
	params := r.Members()
	if state := params["requestState"]; state == nil || string(state) == "null" {
		return c.begin(r, r.Message, c.ctx)
	}
	var at state
	if !c.g.key.Open(c.purpose(r), params.Text("requestState"), &at) {
		return nil, mcpserver.Invalid("requestState: is none of a request with these parameters: send what the result had")
	}
	if time.Now().After(at.Expires) {
		return nil, mcpserver.Invalid("requestState: has expired: the call may have run")
	}
	if at.Call != "" {
		k, isWaiting := c.g.waiting.Load(at.Call)
		if !isWaiting {
			c.isTold()
			return gone(r)
		}
		return k.(*waitingCall).next(r, at.Number)
	}
	own := mcpserver.Object(params.Without("requestState"))
	if at.Own != nil {
		own.With("requestState", at.Own)
	}
	m, err := r.Message.With(own)
	if err != nil {
		return nil, err
	}
	return c.begin(r, m, context.WithValue(c.ctx, isFurtherRound{}, true))
}

// gone returns the result of a round whose call is not here any more.
func gone(r *mcpserver.Request) (any, error) {
	const text = "the call no longer waits for this answer: mcpactor was restarted, or the answer came too late. It may have run: check its effect before you repeat it"
	if r.Method == "tools/call" {
		return completed(failed(text)), nil
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: text}
}

// begin runs a request, and returns the reply to its first round.
func (c *client) begin(r *mcpserver.Request, m *mcpserver.Message, ctx context.Context) (any, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	k := &waitingCall{c: c, id: newID(), cancel: cancel, answers: map[string]chan json.RawMessage{}, changed: make(chan struct{})}
	k.r = r.Detach(context.WithValue(ctx, callKey{}, k), m)
	run := map[string]func(*mcpserver.Request, mcpserver.Object) (any, error){
		"tools/call": c.callTool, "prompts/get": c.getPrompt, "resources/read": c.readResource,
	}[r.Method]
	k.attach(r)
	go func() {
		defer cancel(nil)
		result, err := run(k.r, m.Members())
		k.finish(outcome{result, err})
	}()
	return k.await(r, 0)
}

// next takes a further round, and returns its reply.
func (k *waitingCall) next(r *mcpserver.Request, number int) (any, error) {
	r.Pass()
	responses := mcpserver.ObjectOf(r.Members()["inputResponses"])
	maps.DeleteFunc(responses, func(_ string, answer json.RawMessage) bool { return answer[0] != '{' }) // the question stays open
	k.mu.Lock()
	answers, err := k.call.Answer(number, responses)
	if err == nil {
		k.attachLocked(r)
	}
	for key, answer := range answers {
		k.answers[key] <- answer
		delete(k.answers, key)
	}
	k.wake()
	k.mu.Unlock()
	if err != nil {
		return nil, mcpserver.Invalid("requestState: " + err.Error())
	}
	return k.await(r, number+1)
}

// await waits for the reply with a number, and returns it as the result of a request that is attached. If the client ends the request,
// and no other one waits, the call is cancelled.
func (k *waitingCall) await(r *mcpserver.Request, number int) (any, error) {
	for {
		k.mu.Lock()
		reply, replied := k.call.Reply(number)
		changed := k.changed
		if replied {
			k.detach(len(reply.Questions) > 0)
		}
		k.mu.Unlock()
		switch {
		case replied && len(reply.Questions) > 0:
			k.c.limitWaiting()
			next := state{Call: k.id, Number: number, Expires: time.Now().Add(stateTime)}
			return k.c.asks(r, mcpserver.Object{}.With("inputRequests", reply.Questions), next)
		case replied:
			return k.c.conclude(r, reply.Result)
		}
		select {
		case <-changed:
		case <-r.Context.Done():
			k.leave()
			return nil, errGone
		}
	}
}

// conclude returns the result of a call that is over. That of a server of protocol 2026-07-28 may ask for input.
func (c *client) conclude(r *mcpserver.Request, of outcome) (any, error) {
	raw, isRaw := of.result.(json.RawMessage)
	switch {
	case of.err != nil:
		return nil, of.err
	case isRaw && bytes.Contains(raw, []byte(`"input_required"`)):
		result := mcpserver.ObjectOf(raw)
		if result.Text("resultType") != "input_required" {
			break
		}
		next := state{Expires: time.Now().Add(stateTime)}
		if result["requestState"] != nil {
			own := result.Text("requestState")
			next.Own = &own
		}
		return c.asks(r, result, next)
	}
	result := completed(of.result)
	if r.Method == "resources/read" && result["ttlMs"] == nil {
		cacheable(result, 0)
	}
	return result, nil
}

// attach makes a request one that waits for a reply. What belongs to the call goes to it.
func (k *waitingCall) attach(r *mcpserver.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.attachLocked(r)
}

func (k *waitingCall) attachLocked(r *mcpserver.Request) {
	r.Meta() // is read from other goroutines from now on
	k.r.Attach(r)
	k.attached++
	if k.expires != nil {
		k.expires.Stop()
	}
}

// leave notes that the client has ended a request that was attached.
func (k *waitingCall) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.attached--; k.attached > 0 {
		return
	}
	k.cancel(errGone)
	if k.expires != nil {
		k.expires.Reset(resultTime)
	}
}

// detach notes that a request has its reply. With questions, the call is kept for the next round. The caller holds the mutex.
func (k *waitingCall) detach(hasQuestions bool) {
	if k.attached--; k.attached == 0 {
		k.r.Attach(nil)
		k.idleSince = time.Now()
	}
	switch {
	case k.expires == nil && hasQuestions:
		k.c.g.waiting.Store(k.id, k)
		k.release = k.c.Hold()
		k.expires = time.AfterFunc(roundTime, k.expire)
	case k.expires == nil || k.attached > 0:
	case hasQuestions:
		k.expires.Reset(roundTime)
	default:
		k.expires.Reset(resultTime)
	}
}

// expire forgets a call whose client has not sent the next round. If it is not over, it is cancelled.
func (k *waitingCall) expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.attached > 0 { // the next round came just now
		return
	}
	k.c.g.waiting.Delete(k.id)
	k.release()
	k.cancel(errNoRound)
}

// finish notes the end of the call.
func (k *waitingCall) finish(of outcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.call.Finish(of)
	for key := range k.answers { // those of other calls: this one waits for none
		close(k.answers[key])
	}
	clear(k.answers)
	k.wake()
}

// maxWaiting bounds how many calls of one client wait for their next round, since each occupies its server, and of how many the result is
// kept. Beyond that, the one that has waited for longest is forgotten.
const maxWaiting = 32

// limitWaiting holds these bounds.
func (c *client) limitWaiting() {
	type idle struct {
		count  int
		oldest *waitingCall
		since  time.Time
	}
	all := map[bool]*idle{true: {}, false: {}} // by whether the calls are over
	c.g.waiting.Range(func(_, one any) bool {
		k := one.(*waitingCall)
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.c != c || k.attached > 0 {
			return true
		}
		i := all[k.call.IsOver()]
		if i.count++; i.oldest == nil || k.idleSince.Before(i.since) {
			i.oldest, i.since = k, k.idleSince
		}
		return true
	})
	for _, i := range all {
		if i.count > maxWaiting {
			i.oldest.expire()
		}
	}
}

// wake wakes those that wait for a reply. The caller holds the mutex.
func (k *waitingCall) wake() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// question is a question that is open in a call.
type question struct {
	of     *waitingCall
	key    string
	answer chan json.RawMessage // closed if the call ends without one
}

// askIn asks the client in the reply to a round of the call that a question belongs to, and waits for the answer.
func (c *client) askIn(of *messages.Origin) asking {
	return func(ctx context.Context, method string, params json.RawMessage, _ *mcpserver.Request) (json.RawMessage, error) {
		if params == nil {
			params = json.RawMessage("{}") // some SDKs refuse a question without
		}
		q := c.openQuestion(of, rounds.Question{Method: method, Params: params})
		if q == nil {
			return nil, errNoCall
		}
		select {
		case answer, answered := <-q.answer:
			if !answered {
				return nil, errNoCall
			}
			return answer, nil
		case <-ctx.Done():
			q.of.mu.Lock()
			defer q.of.mu.Unlock()
			q.of.call.Withdraw(q.key)
			delete(q.of.answers, q.key)
			return nil, context.Cause(ctx)
		}
	}
}

// openQuestion asks a question in the call that it belongs to, or returns nil. Over stdio, a server of an earlier protocol does not say which one
// it is: then it is the first one of this client that calls the server, and is not asking. It is none of them if they are seen to be
// those of several programs.
func (c *client) openQuestion(of *messages.Origin, what rounds.Question) *question {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one, isKnown := c.operations[of.Operation.ID]; isKnown {
		k, _ := one.r.Context.Value(callKey{}).(*waitingCall)
		return k.open(what, true)
	}
	var running []operation
	programs := map[string]bool{}
	for _, one := range c.operations {
		if k, _ := one.r.Context.Value(callKey{}).(*waitingCall); k != nil && one.of != nil && one.of.key() == of.Key {
			running = append(running, one)
			programs[string(mcpserver.Canonical(one.r.Meta()[mcp.MetaKeyClientInfo]))] = true
		}
	}
	if len(programs) > 1 {
		return nil
	}
	slices.SortFunc(running, func(a, b operation) int { return cmp.Compare(a.serial, b.serial) })
	for _, one := range running {
		if q := one.r.Context.Value(callKey{}).(*waitingCall).open(what, len(running) == 1); q != nil {
			return q
		}
	}
	return nil
}

// open asks a question in a call, or returns nil if the call is over. Unless it is the only one that the question may belong to, it must
// not be asking.
func (k *waitingCall) open(what rounds.Question, isOnly bool) *question {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.call.IsOver() || k.call.IsAsking() && !isOnly {
		return nil
	}
	q := &question{of: k, key: k.call.Ask(what), answer: make(chan json.RawMessage, 1)}
	k.answers[q.key] = q.answer
	k.wake()
	return q
}
