package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

const (
	// maxOutstanding bounds the requests that were read and not answered yet.
	// Past that, reading waits.
	maxOutstanding = 10_000
	// maxUnwritten bounds the lines that the reader of our output has not taken.
	// Past that, those who have an answer wait.
	maxUnwritten = 100
	// lastWrite is how long that reader is waited for after a signal.
	lastWrite = time.Second
)

// doer is what the runner needs of a supervisor.Client.
type doer interface {
	Do(ctx context.Context, cmd messages.Command) (messages.Reply, error)
}

// runner runs the requests of one stream. Its other state belongs to the goroutine
// of run.
type runner struct {
	client doer
	out    io.Writer
	tools  *toolsets
	events *events // also of others' goroutines
	close  func()  // called when all is answered; events go on until it returns

	order  *order
	all    map[string]*job // outstanding, by id
	done   chan *job
	failed bool

	unwritten [][]byte // lines, in their order
	writing   bool     // one of them is being written
	broken    bool     // nobody reads the output
}

// job is a request that was accepted and not answered yet.
type job struct {
	*request
	cancel    context.CancelFunc // while it runs; nil before
	cancelled bool               // before it ran, if it spans keys
	answer    *answer
}

// queued reports whether the job has to wait for its turn.
func (j *job) queued() bool { return j.spans != nil || j.key.Server != "" }

func newRunner(client doer, out io.Writer, parallel int) *runner {
	r := &runner{client: client, out: out, all: map[string]*job{}, done: make(chan *job)}
	r.tools, r.events, r.close = newToolsets(nil, nil), newEvents(), func() {}
	r.order = newOrder(parallel)
	return r
}

// run answers all requests, closes, and reports whether any request failed. When
// ctx ends, the rest of the input is left unread, what runs is cancelled, and a
// reader of the output that takes nothing is not waited for.
func (r *runner) run(ctx context.Context, in io.Reader) (failed bool) {
	r.order.start = func(j *job) { r.start(ctx, j) }
	lines := make(chan line)
	reading, enough := context.WithCancel(ctx)
	defer enough()
	go readLines(reading, in, lines)
	answers, written := make(chan []byte), make(chan error, 1)
	defer close(answers)
	go writeLines(r.out, answers, written)

	stop, stopped := ctx.Done(), false
	var limit <-chan time.Time
	var closing chan struct{} // nil until all is answered
	for n, closed := 1, false; !closed || !r.flushed(); {
		if closing == nil && lines == nil && len(r.all) == 0 {
			closing = make(chan struct{})
			go func() { r.close(); closing <- struct{}{} }()
		}
		input, done, events, output, next := lines, r.done, r.events.ready, answers, []byte(nil)
		if len(r.all) >= maxOutstanding {
			input = nil
		}
		if len(r.unwritten) >= maxUnwritten {
			events = nil
			if !stopped {
				input, done = nil, nil
			}
		}
		if r.writing || len(r.unwritten) == 0 {
			output = nil
		} else {
			next = r.unwritten[0]
		}
		if stopped && closed && limit == nil {
			limit = time.After(lastWrite)
		}
		select {
		case l, more := <-input:
			if !more {
				lines = nil
				continue
			}
			r.accept(n, l)
			n++
		case j := <-done:
			r.finish(j, j.answer)
		case <-events:
			r.tell()
		case <-closing:
			closed = true
		case output <- next:
			r.unwritten, r.writing = r.unwritten[1:], true
		case err := <-written:
			r.writing = false
			if err != nil && !r.broken {
				r.failed, r.broken, r.unwritten = true, true, nil
				lines = nil
				enough()
				r.cancelAll()
			}
		case <-stop:
			lines, stop, stopped = nil, nil, true
			r.cancelAll()
		case <-limit:
			return true
		}
	}
	return r.failed
}

// accept takes one line in.
func (r *runner) accept(n int, l line) {
	if l.err != nil {
		r.write(invalid(nil, fmt.Sprintf("line %d: %v", n, l.err)))
		return
	}
	if len(bytes.TrimSpace(l.text)) == 0 {
		return
	}
	req, err := parseRequest(l.text)
	if err == nil && r.all[string(req.id)] != nil {
		err = named("id", fmt.Errorf("%s is that of a request that is not answered yet", req.id))
	}
	if err != nil {
		r.write(invalid(req.id, fmt.Sprintf("line %d: %s", n, joined(err))))
		return
	}
	j := &job{request: req}
	switch {
	case req.target != "":
		r.write(&answer{ID: req.id, OK: true, Result: map[string]bool{"found": r.cancel(req.target)}})
		return
	case req.name != "":
		// Its turn is among the requests of the server that it is about.
		if j.key.Server = r.tools.owner(req.name); j.key.Server == "" {
			j.spans = &pattern{scope: j.key.Scope}
		}
	}
	r.all[string(req.id)] = j
	if j.queued() {
		r.order.add(j)
		return
	}
	r.order.start(j) // inspect
}

// start runs a job whose turn it is.
func (r *runner) start(ctx context.Context, j *job) {
	timeout := j.timeout
	var cancel context.CancelFunc
	if timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, timeout)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	j.cancel = cancel
	if j.cancelled {
		cancel()
	}
	go func() {
		defer cancel()
		j.answer = r.perform(ctx, j)
		r.done <- j
	}()
}

// perform does what a job is about, in a goroutine of its own.
func (r *runner) perform(ctx context.Context, j *job) *answer {
	cmd := j.cmd
	switch {
	case j.lists:
		set, err := r.tools.list(ctx, j.key.Scope)
		if err != nil {
			return answerTo(j.id, nil, err)
		}
		return &answer{ID: j.id, OK: true, Result: newToolList(set)}
	case j.name != "":
		call, err := r.tools.call(ctx, j.key.Scope, j.name, j.arguments)
		if err != nil {
			return answerTo(j.id, nil, err)
		}
		call.Replay = j.replay
		cmd = call
	}
	if j.progress {
		ctx = supervisor.WithProgress(ctx, r.events.progress(j.id))
	}
	reply, err := r.client.Do(ctx, cmd)
	switch cmd.(type) {
	case *messages.CloseScope:
		r.tools.forget(j.key.Scope)
	case *messages.CloseAll:
		r.tools.forgetAll()
	}
	return answerTo(j.id, reply, err)
}

// finish answers a job, and lets those go on that waited for it.
func (r *runner) finish(j *job, a *answer) {
	delete(r.all, string(j.id))
	if len(r.unwritten) < maxUnwritten+maxEvents { // also when we were stopped
		r.tell() // its progress stands before its answer
	}
	r.write(a)
	if j.queued() {
		r.order.remove(j)
	}
}

// cancel cancels the job with an id. One that spans keys and waits for its turn
// still waits for it, and comes to nothing then.
func (r *runner) cancel(id string) (found bool) {
	j := r.all[id]
	switch {
	case j == nil:
		return false
	case j.cancel != nil:
		j.cancel()
	case j.spans != nil:
		j.cancelled = true
	default:
		r.order.drop(j)
		delete(r.all, id)
		r.write(refused(j.id, messages.CodeCancelled, "cancelled before it was started"))
	}
	return true
}

func (r *runner) cancelAll() {
	for id := range r.all {
		r.cancel(id)
	}
}

// write has one answer written, as soon as the lines before it are.
func (r *runner) write(a *answer) {
	r.failed = r.failed || !a.OK
	data, err := json.Marshal(a)
	if err != nil { // a result that is no JSON
		data, _ = json.Marshal(refused(a.ID, messages.CodeInvalid, err.Error()))
		r.failed = true
	}
	r.print(data)
}

// tell has the events that wait written.
func (r *runner) tell() {
	for _, l := range r.events.take() {
		data, err := json.Marshal(l)
		if err != nil { // the server's data is no JSON
			l.Data = nil
			data, _ = json.Marshal(l)
		}
		r.print(data)
	}
}

func (r *runner) print(data []byte) {
	if !r.broken {
		r.unwritten = append(r.unwritten, append(data, '\n'))
	}
}

// flushed reports whether all is written, or nobody reads it.
func (r *runner) flushed() bool {
	return len(r.unwritten) == 0 && !r.writing && (r.broken || r.events.empty())
}
