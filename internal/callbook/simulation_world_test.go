package callbook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/storelimit"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

// world is what is outside of the processes: the store and the server.
type world struct {
	records  resume.Memory
	requests []*request // that were sent to the server
	ran      map[string][]time.Time
	sent     map[string]int
	tasks    map[string]string // the states of tasks by their ids: working, done or gone
	healed   atomic.Bool       // there are no more faults
}

// config is what a schedule is about.
type config struct {
	mild     bool // the store fails rarely, and only after it has done what was asked for; no process dies
	limited  bool // storelimit is in front of the store
	plain    bool // the store cannot compare, and has one process
	resolves bool
	knows    bool // whoever finds out what became of a call always knows
	keeps    bool // results are kept
	asTasks  bool
}

// Names of whoever asks, in contexts.
type nameKey struct{}

func nameOf(ctx context.Context) string {
	name, _ := ctx.Value(nameKey{}).(string)
	return cmp.Or(name, "sweep")
}

// errFault is the error of a store.
var errFault = errors.New("the store has failed")

// shop is the store as one process sees it.
type shop struct {
	s *simulation
	p *process
}

// request asks the store: what it does, and its answer, may be late, and either may fail.
func (o *shop) request(ctx context.Context, what string, key messages.Key, do func() error) error {
	s, name := o.s, fmt.Sprintf("%s %s: %s of %s", o.p, nameOf(ctx), what, key.Scope)
	if key.Scope == "" {
		name = fmt.Sprintf("%s %s: %s", o.p, nameOf(ctx), what)
	}
	most := 2 * time.Second
	switch {
	case s.cfg.mild || s.cfg.plain || s.healed.Load(): // without a comparison, one change waits for the other
		most = 300 * time.Millisecond
	case s.cfg.limited:
		most = 7 * time.Second // longer than it is waited for
	}
	if !s.waitAs(o.p, most, name, true) {
		return errFault
	}
	if fault := s.fault(3, 8); fault == 1 && !s.cfg.mild {
		s.Logf("fails before")
		return errFault
	} else if err := do(); o.p.isDead() {
		s.wait(o.p, 0, name) // nobody gets the answer
		return errFault
	} else if err != nil || fault == 2 && (!s.cfg.mild || what == "swap") {
		s.Logf("fails after: %v", err)
		return errFault
	}
	if s.rarely(3) && !s.wait(o.p, most, name+" is answered") {
		return errFault
	}
	return nil
}

func (o *shop) Load(ctx context.Context, key messages.Key) (record *mcpbridge.Record, err error) {
	err = o.request(ctx, "load", key, func() (err error) {
		record, err = o.s.records.Load(context.Background(), key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return record, nil
}

func (o *shop) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	return o.request(ctx, "save", key, func() error {
		o.s.changed(o.s.record(key), record)
		return o.s.records.Save(context.Background(), key, record)
	})
}

func (o *shop) Delete(ctx context.Context, key messages.Key) error {
	return o.request(ctx, "delete", key, func() error { return o.s.records.Delete(context.Background(), key) })
}

func (o *shop) Keys(ctx context.Context) (keys []messages.Key, err error) {
	err = o.request(ctx, "keys", messages.Key{}, func() (err error) {
		keys, err = o.s.records.Keys(context.Background())
		return err
	})
	slices.SortFunc(keys, messages.Key.Compare)
	return keys, err
}

// comparing is a shop that swaps.
type comparing struct{ *shop }

func (o comparing) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (is bool, err error) {
	err = o.request(ctx, "swap", key, func() (err error) {
		before := o.s.record(key)
		if is, err = o.s.records.Swap(context.Background(), key, from, record); is {
			o.s.changed(before, record)
		}
		o.s.Logf("swapped: %v", is)
		return err
	})
	return is && err == nil, err
}

// store returns the store of a process.
func (s *simulation) store(p *process) mcpbridge.Store {
	var store mcpbridge.Store = &shop{s, p}
	if !s.cfg.plain {
		store = comparing{&shop{s, p}}
	}
	if s.cfg.limited {
		store = storelimit.New(store)
	}
	return store
}

// record returns the record of a key.
func (s *simulation) record(key messages.Key) Record {
	kept, err := s.records.Load(context.Background(), key)
	if err != nil {
		s.Violate("a record cannot be read", "%v", err)
	}
	r, _, err := decode(kept, time.Now())
	if err != nil {
		s.Violate("a record cannot be read", "%v", err)
	}
	return r
}

// changed checks a change of a record.
func (s *simulation) changed(before Record, record *mcpbridge.Record) {
	r, _, err := decode(record, time.Now())
	switch {
	case err != nil:
		s.Violate("a record cannot be read", "%v", err)
	case !slices.Contains(follows[before.State], r.State):
		s.Violate("a state does not follow", "%q after %q", r.State, before.State)
	case before.State != None && before.State != Proposed && (r.Token != before.Token || r.Call != before.Call):
		s.Violate("a record becomes that of another call", "%q after %q", r.State, before.State)
	}
	s.Crossed(fmt.Sprintf("%s → %s", before.State, r.State))
	s.Logf("%s → %s", before.State, r.State)
}

// request is a call on its way to the server.
type request struct {
	of, token string
	later     bool // it has the answers of a round
	fenced    bool // the server does not run it any more
	answer    chan outcome
}

// outcome is what a run gets from the server, or what it says of the call.
type outcome struct {
	result *messages.ToolResult
	task   string
	why    string
	may    bool // it may have run
	isTask bool // it is one
	asks   bool // the server asks for input
	gone   bool // its task is over
}

// call sends a call, and returns its outcome. Requests go on when the process that has sent them has died.
func (s *simulation) call(ctx context.Context, of, token string, later bool) outcome {
	r := &request{of: of, token: token, later: later, answer: make(chan outcome, 2)}
	s.requests = append(s.requests, r)
	s.sent[of]++
	s.Logf("%s is sent", of)
	go s.serve(r)
	return s.await(ctx, r.answer)
}

// await returns an answer, or that it did not come in time.
func (s *simulation) await(ctx context.Context, answer chan outcome) outcome {
	select {
	case o := <-answer:
		return o
	case <-ctx.Done():
		return outcome{why: "too late", may: true}
	}
}

// serve does what a server does with a call.
func (s *simulation) serve(r *request) {
	if !s.wait(nil, 30*time.Second, r.of+" arrives") || r.fenced {
		return
	}
	switch s.fault(4, 3) {
	case 1:
		r.answer <- outcome{why: "refused"}
		return
	case 2:
		r.answer <- outcome{why: "lost", may: true}
		return
	case 3:
		r.answer <- outcome{why: "lost", may: true} // and then it runs
		if !s.wait(nil, 10*time.Second, r.of+" arrives late") || r.fenced {
			return
		}
	}
	if s.cfg.asTasks && !r.later && s.rarely(3) {
		if s.wait(nil, 5*time.Second, r.of+" is answered with a question") {
			r.answer <- outcome{asks: true}
		}
		return
	}
	s.run(r.of)
	if s.cfg.asTasks && s.rarely(2) {
		task := fmt.Sprint("task", len(s.tasks))
		s.tasks[task] = "working"
		if s.wait(nil, 5*time.Second, r.of+" is a task") {
			r.answer <- outcome{task: task}
		}
		return
	}
	if !s.wait(nil, 10*time.Second, r.of+" is answered") {
		return
	}
	if s.fault(2, 4) == 1 {
		r.answer <- outcome{why: "lost", may: true}
		return
	}
	r.answer <- outcome{result: resultOf(r.of)}
}

// run notes that a call has run.
func (s *simulation) run(of string) {
	s.Logf("%s runs", of)
	s.ran[of] = append(s.ran[of], time.Now())
	if len(s.ran[of]) > 1 {
		s.Violate("a call has run twice", "%s", of)
	}
	if why := s.never[of]; why != "" {
		s.Violate("a call has run that never may", "%s: %s", of, why)
	}
}

// resultOf is the result of a call.
func resultOf(of string) *messages.ToolResult {
	return &messages.ToolResult{Result: &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "result of " + of}}}}
}

// task asks for a task once.
func (s *simulation) task(ctx context.Context, by, of, id string) outcome {
	answer := make(chan outcome, 1)
	go func() {
		if !s.wait(nil, 5*time.Second, of+" as a task is asked for by "+by) {
			return
		}
		switch s.fault(4, 3) {
		case 1:
			answer <- outcome{why: "refused"} // the question
			return
		case 2:
			answer <- outcome{why: "lost", may: true}
			return
		case 3:
			s.tasks[id] = "gone"
		}
		switch s.tasks[id] {
		case "gone":
			answer <- outcome{why: "the task is gone", may: true, gone: true}
			return
		case "working":
			if !s.rarely(2) {
				s.tasks[id] = "done"
			}
			answer <- outcome{task: id}
			return
		}
		answer <- outcome{result: resultOf(of)}
	}()
	return s.await(ctx, answer)
}

// resolve finds out what became of a call, from the server: a call that it says has not run will not.
func (s *simulation) resolve(ctx context.Context, p *process, op *messages.CallTool) (messages.Resolution, *mcp.CallToolResult, error) {
	of := nameOfCall(op)
	if !s.wait(p, 3*time.Second, fmt.Sprintf("%s %s: what became of %s?", p, nameOf(ctx), of)) {
		return "", nil, errFault
	}
	if !s.cfg.knows {
		switch s.fault(4, 3) {
		case 1:
			return messages.ResolvedUnknown, nil, nil
		case 2:
			return messages.ResolvedRan, nil, errFault
		case 3:
			panic("a resolver")
		}
	}
	var resolution messages.Resolution
	var result *mcp.CallToolResult
	if len(s.ran[of]) > 0 {
		resolution, result = messages.ResolvedRan, resultOf(of).Result
	} else {
		resolution = messages.ResolvedNotRun
		for _, r := range s.requests {
			r.fenced = r.fenced || r.of == of
		}
	}
	s.Logf("%s: %s", of, resolution)
	s.Crossed("resolved: " + string(resolution))
	if s.rarely(3) && !s.wait(p, 8*time.Second, fmt.Sprintf("%s %s: what became of %s is said", p, nameOf(ctx), of)) {
		return "", nil, errFault
	}
	return resolution, result, nil
}

// fault chooses whether something fails, and how: 0 is that it does not.
func (s *simulation) fault(n, in int) int {
	if s.healed.Load() {
		return 0
	}
	return s.Rarely(n, in)
}

// rarely is true one time in some.
func (s *simulation) rarely(in int) bool { return s.Rarely(2, in) == 1 }
