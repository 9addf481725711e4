package toolset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/messages"
)

// Policy decides which calls of a [Toolset] are sent. It remembers answers for a tool and its
// [Tool.Digest], so that a tool whose definition changes is asked about again. Toolsets that share
// a Policy share what it remembers, until the process ends. Set the fields before the first use,
// and do not copy a Policy after it. Its functions may be called by several goroutines at once.
// If one of them panics, the call fails with [messages.CodeInternal].
type Policy struct {
	// Accept decides about the definition of a tool that a server has listed, before the model is shown it: an error leaves the tool out.
	// It is in [Set.LeftOut] then, and a call of it fails with [messages.CodeRefused] and the text of the error, and is not sent. A
	// [github.com/mcpactor/mcpactor/pin.Lock] has such decisions. With Accept, the first call on a session waits until that session has
	// listed its tools. Accept is asked again before each call of the tool, and a tool that was left out is asked about again whenever
	// tools are listed. It must not block. nil accepts all tools. If only Accept is set, every call of a tool that it accepts is sent.
	Accept func(*Tool) error
	// Decide decides about a call. It must not block. It may look up a digest that an earlier
	// process has stored. nil returns [Ask] for every call. The annotations of a tool are what
	// the server says: do not trust them.
	Decide func(Proposal) Decision
	// Ask is called if Decide returns [Ask] and no answer is remembered. It asks, for example, a
	// person, and returns the answer. If it returns [Ask] or an error, the call is denied. If it has
	// only told a person of the call, it returns [Defer]. nil denies. ctx ends when the answer is no
	// longer wanted, because the context of the call has ended, or the answer to another call was
	// remembered. The call does not wait for an Ask that ignores this.
	Ask func(ctx context.Context, p Proposal) (Decision, error)

	mu         sync.Mutex
	remembered map[definitionKey]Decision
	news       chan struct{} // closed when an answer is remembered
}

// Proposal is a call that a [Policy] decides about.
type Proposal struct {
	// Tool has the server, the scope, the annotations and the digest. Read-only.
	Tool *Tool
	// Arguments are the arguments of the call, a JSON object as the model wrote it. It is a copy.
	// Decode it into a map before you look at a value: the text may have escapes, and a struct
	// ignores the case of names, which the server may not.
	Arguments json.RawMessage
}

// Verdict is what is decided about a call.
type Verdict string

// The verdicts. The zero value and all other values mean [Ask].
const (
	// Ask leaves the decision to [Policy.Ask].
	Ask Verdict = "ask"
	// Allow sends the call.
	Allow Verdict = "allow"
	// Deny answers the call with a failure of code [messages.CodeRefused].
	Deny Verdict = "deny"
	// Defer leaves the decision to [Toolset.Answer]: the call ends with a [Pending] and is not sent
	// before the answer, which may come from another process.
	Defer Verdict = "defer"
)

// Decision is the decision about a call.
type Decision struct {
	Verdict Verdict
	// Remember applies an answer of [Policy.Ask] or [Toolset.Answer] to all later calls of the tool
	// with the same digest. Decide still decides first.
	Remember bool
	// Reason tells the model why the call is denied. It may be empty.
	Reason string
}

// definitionKey identifies the definition of a tool, for which an answer is remembered.
type definitionKey struct{ server, tool, digest string }

// accepts reports whether definitions have to be accepted.
func (p *Policy) accepts() bool { return p != nil && p.Accept != nil }

// refused returns a failure for each tool that is not accepted.
func (p *Policy) refused(tools []*Tool) (all []*messages.Failure) {
	if !p.accepts() {
		return nil
	}
	for _, tool := range tools {
		if f := p.refuses(tool); f != nil {
			all = append(all, f)
		}
	}
	return all
}

// refuses returns why a tool is not accepted, or nil.
func (p *Policy) refuses(tool *Tool) *messages.Failure {
	_, err := guard.Call(func() (any, error) { return nil, p.Accept(tool) })
	if err == nil {
		return nil
	}
	f := &messages.Failure{
		Key: messages.Key{Server: tool.Server, Scope: tool.Scope}, Op: "tools/list", Target: tool.Original, Code: messages.CodeRefused,
		Detail: visible.Detail(err.Error()), Cause: err,
	}
	if p := (*guard.Panic)(nil); errors.As(err, &p) {
		f.Detail = visible.Detail(fmt.Sprintf("the policy panicked: %v", p.Value))
	}
	return f
}

// approve returns the decision about a call, and waits for an answer where one is needed.
func (p *Policy) approve(ctx context.Context, tool *Tool, call *messages.CallTool) (Decision, error) {
	if p.Decide == nil && p.Ask == nil && p.accepts() {
		return Decision{Verdict: Allow}, nil
	}
	decision, decided, err := p.decide(tool, call)
	if err != nil || decided {
		return decision, err
	}
	return p.ask(ctx, tool, call)
}

// decide returns the decision about a call if nobody has to be asked.
func (p *Policy) decide(tool *Tool, call *messages.CallTool) (d Decision, decided bool, err error) {
	if p.Decide != nil {
		d, err = guard.Call(func() (Decision, error) { return p.Decide(proposal(tool, call)), nil })
		if err != nil {
			return Decision{}, false, broken(call, err)
		}
		if d.final() {
			return d, true, nil
		}
	}
	if answer, known, _ := p.recall(keyOf(tool)); known {
		return answer, true, nil
	}
	return d, d.Verdict == Defer, nil
}

// final reports whether a decision needs no answer.
func (d Decision) final() bool { return d.Verdict == Allow || d.Verdict == Deny }

// ask asks about a call, unless an answer is remembered meanwhile.
func (p *Policy) ask(ctx context.Context, tool *Tool, call *messages.CallTool) (Decision, error) {
	if p.Ask == nil {
		return Decision{Verdict: Deny, Reason: "nobody can be asked"}, nil
	}
	if ctx.Err() != nil {
		return Decision{}, unanswered(ctx, call)
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := p.question(asking, call, proposal(tool, call))
	for {
		d, known, news := p.recall(keyOf(tool))
		if known {
			return d, nil
		}
		select {
		case a := <-answers:
			if a.err == nil {
				p.remember(keyOf(tool), a.Decision)
			}
			if ctx.Err() != nil { // also if Ask returns an error for this reason
				return Decision{}, unanswered(ctx, call)
			}
			return a.Decision, a.err
		case <-news:
		case <-ctx.Done():
			return Decision{}, unanswered(ctx, call)
		}
	}
}

// answer is what [Policy.Ask] has returned.
type answer struct {
	Decision
	err error // a failure
}

// question calls Ask in a goroutine. An Ask that ignores its context keeps the goroutine.
func (p *Policy) question(ctx context.Context, call *messages.CallTool, about Proposal) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: messages.NewFailure(call, messages.CodeInternal, "the policy ended its goroutine")}
		defer func() { answers <- a }()
		d, err := guard.Call(func() (Decision, error) { return p.Ask(ctx, about) })
		a = answer{d, broken(call, err)}
	}()
	return answers
}

// broken returns the failure of a call whose policy returned an error or panicked, or nil.
func broken(call *messages.CallTool, err error) error {
	if err == nil {
		return nil
	}
	f := messages.NewFailure(call, messages.CodeRefused, "no approval could be obtained")
	if p := (*guard.Panic)(nil); errors.As(err, &p) {
		f.Code, f.Detail = messages.CodeInternal, fmt.Sprintf("the policy panicked: %v", p.Value)
	}
	f.Cause = err
	return f
}

// recall returns the remembered answer for a tool, and a channel that is closed when another
// answer is remembered.
func (p *Policy) recall(about definitionKey) (d Decision, known bool, news <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.news == nil {
		p.news = make(chan struct{})
	}
	d, known = p.remembered[about]
	return d, known, p.news
}

// remember keeps an answer for a tool if that is wanted.
func (p *Policy) remember(about definitionKey, d Decision) {
	if !d.Remember || !d.final() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.remembered == nil {
		p.remembered = map[definitionKey]Decision{}
	}
	p.remembered[about] = d
	if p.news != nil {
		close(p.news)
		p.news = nil
	}
}

func keyOf(tool *Tool) definitionKey { return definitionKey{tool.Server, tool.Original, tool.Digest} }

// proposal returns a proposal with a copy of the arguments.
func proposal(tool *Tool, call *messages.CallTool) Proposal {
	raw, _ := call.Params.Arguments.(json.RawMessage)
	return Proposal{Tool: tool, Arguments: bytes.Clone(raw)}
}

// refusal returns the failure of a call that is not allowed.
func refusal(call *messages.CallTool, d Decision) error {
	detail := "the call was not approved"
	if d.Reason != "" {
		detail += ": " + d.Reason
	}
	return messages.NewFailure(call, messages.CodeRefused, detail)
}

// unanswered returns the failure of a call whose context ended before the answer came.
func unanswered(ctx context.Context, call *messages.CallTool) error {
	return ended(ctx, messages.NewFailure(call, "", ""), "the call was not approved in time")
}
