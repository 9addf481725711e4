package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

const (
	// maxOutstanding bounds the requests that were read and not answered yet.
	// Past that, reading waits.
	maxOutstanding = 10_000
	// maxUnwritten bounds the answers that the reader of our output has not taken.
	// Past that, those who have one wait.
	maxUnwritten = 100
	// lastWrite is how long that reader is waited for after a signal.
	lastWrite = time.Second
)

// doer is what the runner needs of a supervisor.Client.
type doer interface {
	Do(ctx context.Context, cmd messages.Command) (messages.Reply, error)
}

// runner runs the requests of one stream. All its state belongs to the
// goroutine of run.
type runner struct {
	client doer
	out    io.Writer
	order  *order
	all    map[string]*job // outstanding, by id
	done   chan *job
	failed bool

	unwritten [][]byte // answers, in their order
	writing   bool     // one of them is being written
	broken    bool     // nobody reads the output
}

// job is a request that was accepted and not answered yet.
type job struct {
	*request
	cancel    context.CancelFunc // while it runs; nil before
	cancelled bool               // a close, before it ran
	answer    *answer
}

// queued reports whether the job has to wait for its turn.
func (j *job) queued() bool { return j.closes != nil || j.key.Server != "" }

func newRunner(client doer, out io.Writer, parallel int) *runner {
	r := &runner{client: client, out: out, all: map[string]*job{}, done: make(chan *job)}
	r.order = newOrder(parallel)
	return r
}

// run answers all requests, and reports whether any of them failed. When ctx
// ends, the rest of the input is left unread, what runs is cancelled, and a
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
	for n := 1; lines != nil || len(r.all) > 0 || len(r.unwritten) > 0 || r.writing; {
		input, done, output, next := lines, r.done, answers, []byte(nil)
		if len(r.all) >= maxOutstanding {
			input = nil
		}
		if len(r.unwritten) >= maxUnwritten && !stopped {
			input, done = nil, nil
		}
		if r.writing || len(r.unwritten) == 0 {
			output = nil
		} else {
			next = r.unwritten[0]
		}
		if stopped && len(r.all) == 0 && limit == nil {
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
	case !j.queued(): // inspect
		r.all[string(req.id)] = j
		r.order.start(j)
	default:
		r.all[string(req.id)] = j
		r.order.add(j)
	}
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
		reply, err := r.client.Do(ctx, j.cmd)
		j.answer = answerTo(j.id, reply, err)
		r.done <- j
	}()
}

// finish answers a job, and lets those go on that waited for it.
func (r *runner) finish(j *job, a *answer) {
	delete(r.all, string(j.id))
	r.write(a)
	if j.queued() {
		r.order.remove(j)
	}
}

// cancel cancels the job with an id. A close that waits for its turn still waits
// for it, and comes to nothing then.
func (r *runner) cancel(id string) (found bool) {
	j := r.all[id]
	switch {
	case j == nil:
		return false
	case j.cancel != nil:
		j.cancel()
	case j.closes != nil:
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

// write has one line written, as soon as those before it are.
func (r *runner) write(a *answer) {
	r.failed = r.failed || !a.OK
	data, err := json.Marshal(a)
	if err != nil { // a result that is no JSON
		data, _ = json.Marshal(refused(a.ID, messages.CodeInternal, err.Error()))
		r.failed = true
	}
	if !r.broken {
		r.unwritten = append(r.unwritten, append(data, '\n'))
	}
}
