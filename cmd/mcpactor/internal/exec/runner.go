package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/commands"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

const (
	// maxJobs bounds the requests that have been read and have no response yet. The
	// runner reads no more until there are fewer.
	maxJobs = 10_000
	// writeTimeout is how long the runner waits for the reader of stdout after a signal.
	writeTimeout = time.Second
)

// client sends commands. It is implemented by supervisor.Client.
type client interface {
	Do(ctx context.Context, cmd messages.Command) (messages.Reply, error)
}

// runner runs the requests of one input. Only the goroutine of run uses the fields from
// schedule on, except for the channel done.
type runner struct {
	client   client
	stdout   io.Writer
	toolsets *toolsets
	pins     *inputs.Pins // or nil
	events   *eventQueue
	close    func() // called after the last response; events are printed until it returns

	schedule *schedule
	jobs     map[string]*job // the unfinished jobs, by id
	done     chan *job       // the jobs that have a response
	failed   bool            // some request failed

	output *output
}

// job is a request that has no response yet.
type job struct {
	*request
	cancel    context.CancelFunc // nil until the job starts
	cancelled bool               // cancelled before the start; only if the job spans keys
	response  *response          // nil until the job has run
}

// scheduled reports whether the job waits for other jobs.
func (j *job) scheduled() bool { return j.spans != nil || j.key.Server != "" }

func newRunner(client client, stdout io.Writer, parallel int) *runner {
	return &runner{
		client: client, stdout: stdout, toolsets: newToolsets(nil, nil), events: newEventQueue(), close: func() {},
		schedule: newSchedule(parallel), jobs: map[string]*job{}, done: make(chan *job),
	}
}

// run writes a response to each request, calls close, and reports whether any request
// failed. When ctx ends, run leaves the rest of the input unread, cancels the jobs, and
// waits no longer than writeTimeout for the reader of the output.
func (r *runner) run(ctx context.Context, in io.Reader) (failed bool) {
	r.schedule.start = func(j *job) { r.start(ctx, j) }
	lines := make(chan line)
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	go readLines(reading, in, lines)
	r.output = newOutput(r.stdout)
	defer r.output.close()

	stop, stopped := ctx.Done(), false
	var timeout <-chan time.Time
	var closing chan struct{} // nil until every request has its response
	for n, closed := 1, false; !closed || !r.flushed(); {
		if closing == nil && lines == nil && len(r.jobs) == 0 {
			closing = make(chan struct{})
			go func() { r.close(); closing <- struct{}{} }()
		}
		// A nil channel takes no part in the select below.
		input, done, events := lines, r.done, r.events.ready
		if len(r.jobs) >= maxJobs {
			input = nil
		}
		if r.output.full() {
			events = nil
			if !stopped {
				input, done = nil, nil
			}
		}
		toWrite, next := r.output.next()
		if stopped && closed && timeout == nil {
			timeout = time.After(writeTimeout)
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
			r.finish(j)
		case <-events:
			r.printEvents()
		case <-closing:
			closed = true
		case toWrite <- next:
			r.output.onSent()
		case err := <-r.output.written:
			if r.output.onWritten(err) {
				r.failed, lines = true, nil
				stopReading()
				r.cancelAll()
			}
		case <-stop:
			lines, stop, stopped = nil, nil, true
			r.cancelAll()
		case <-timeout:
			return true
		}
	}
	return r.failed
}

// accept accepts a line of input, which is number n.
func (r *runner) accept(n int, l line) {
	if l.err != nil {
		r.respond(invalidResponse(nil, fmt.Sprintf("line %d: %v", n, l.err)))
		return
	}
	if len(bytes.TrimSpace(l.text)) == 0 {
		return
	}
	req, err := parseRequest(l.text)
	if err == nil && r.jobs[string(req.id)] != nil {
		err = fieldErr("id", fmt.Errorf("%s is the id of a request that has no response yet", req.id))
	}
	if err != nil {
		r.respond(invalidResponse(req.id, fmt.Sprintf("line %d: %s", n, inputs.OneLine(err))))
		return
	}
	j := &job{request: req}
	switch {
	case req.target != "":
		r.respond(&response{ID: req.id, OK: true, Result: map[string]bool{"found": r.cancel(req.target)}})
		return
	case req.name != "":
		// The job is scheduled with the other jobs of its server.
		if j.key.Server = r.toolsets.owner(req.name); j.key.Server == "" {
			j.spans = &keySet{scope: j.key.Scope}
		}
	}
	r.jobs[string(req.id)] = j
	if j.scheduled() {
		r.schedule.add(j)
		return
	}
	r.schedule.start(j) // the ops inspect and forget
}

// start starts a job.
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
		j.response = r.perform(ctx, j)
		r.done <- j
	}()
}

// perform runs a job, outside the goroutine of run.
func (r *runner) perform(ctx context.Context, j *job) *response {
	cmd := j.cmd
	switch {
	case j.listsTools:
		set, err := r.toolsets.list(ctx, j.key.Scope)
		if err != nil {
			return responseTo(j.id, nil, err)
		}
		return &response{ID: j.id, OK: true, Result: commands.NewToolList(set)}
	case j.name != "":
		call, err := r.toolsets.call(ctx, j.key.Scope, j.name, j.arguments)
		if err != nil {
			return responseTo(j.id, nil, err)
		}
		call.Replay, call.Quiet = j.replay, j.quiet
		cmd = call
	default:
		if err := r.pins.Check(ctx, r.client, cmd); err != nil {
			return responseTo(j.id, nil, err)
		}
	}
	if j.progress {
		ctx = supervisor.WithProgress(ctx, r.events.progress(j.id))
	}
	reply, err := r.client.Do(ctx, cmd)
	switch cmd.(type) {
	case *messages.CloseScope:
		r.toolsets.close(j.key.Scope)
	case *messages.CloseAll:
		r.toolsets.closeAll()
	}
	return responseTo(j.id, reply, err)
}

// finish writes the response of a job that has run, and starts the jobs that waited for it.
func (r *runner) finish(j *job) {
	delete(r.jobs, string(j.id))
	if len(r.output.unwritten) < maxUnwritten+maxEvents { // there may be more after a signal
		r.printEvents() // the progress of a request comes before its response
	}
	r.respond(j.response)
	if j.scheduled() {
		r.schedule.finish(j)
	}
}

// cancel cancels the job with an id. A job that spans keys keeps its place in the schedule,
// and fails when it starts.
func (r *runner) cancel(id string) (found bool) {
	j := r.jobs[id]
	switch {
	case j == nil:
		return false
	case j.cancel != nil:
		j.cancel()
	case j.spans != nil:
		j.cancelled = true
	default:
		r.schedule.drop(j)
		delete(r.jobs, id)
		r.respond(failedResponse(j.id, messages.CodeCancelled, "cancelled before it started"))
	}
	return true
}

func (r *runner) cancelAll() {
	for id := range r.jobs {
		r.cancel(id)
	}
}

// respond prints a response.
func (r *runner) respond(resp *response) {
	r.failed = r.failed || !resp.OK
	data, err := json.Marshal(resp)
	if err != nil { // the result of the server is not valid JSON
		data, _ = json.Marshal(failedResponse(resp.ID, messages.CodeInvalid, err.Error()))
		r.failed = true
	}
	r.output.print(data)
}

// printEvents prints the events of the queue.
func (r *runner) printEvents() {
	for _, e := range r.events.take() {
		data, err := json.Marshal(e)
		if err != nil { // the data of the server is not valid JSON
			e.Data = nil
			data, _ = json.Marshal(e)
		}
		r.output.print(data)
	}
}

// flushed reports whether all responses and events are written, or writing has failed.
func (r *runner) flushed() bool {
	return r.output.idle() && (r.output.broken || r.events.empty())
}
