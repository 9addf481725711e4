package contract

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/rounds"
	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// A call that its server has turned into a task stays a call that runs: the goroutine of the run asks for the task until
// it is over, and answers its questions. When the connection ends, so does the run. The next run, on the next
// connection, follows the same task:
//
//	run ──tools/call──▶ result
//	         │ task                       ┌──── connection ended ────▶ parked ──▶ run
//	         ▼                            │
//	      stored ──▶ pause ──tasks/get──▶ ├──── working ────▶ pause
//	                                      ├──── input_required ──▶ asked, tasks/update; pause
//	                                      ├──── over ────▶ result or failure
//	                                      └──── not known ────▶ lost

// TaskHeard brings the state of a task from the goroutine that follows it to its session. It comes before the run
// returns.
type TaskHeard struct {
	Call *Call
	Task *tasks.Task
}

// RunOn runs the call on a connection, after a pause. op is what is sent: its operation, or a later round of it. task is what the
// call has become in an earlier run, or nil. A result may be [rounds.Asked]: then the next round is another run. It may block.
func (k *Call) RunOn(ctx context.Context, pause time.Duration, conn dial.Conn, op messages.Operation, task *tasks.Task, self *mailbox.Mailbox) (result messages.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = Panicked(r)
		}
	}()
	if k.Mint != nil {
		if err := k.Mint.Begin(); err != nil {
			return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: err.Error(), Err: err}
		}
		generation := k.Run.Generation
		defer func() {
			if _, asks := result.(*rounds.Asked); err == nil && !asks {
				k.Mint.Answered(result, generation)
			}
		}()
	}
	if k.Record == nil {
		return k.send(ctx, pause, conn, op, task, self)
	}
	return k.runRecorded(ctx, pause, conn, op, task, self)
}

// runRecorded does what RunOn does for a call that has a record.
func (k *Call) runRecorded(ctx context.Context, pause time.Duration, conn dial.Conn, op messages.Operation, task *tasks.Task, self *mailbox.Mailbox) (result messages.Result, err error) {
	if !k.Record.Hold() {
		return nil, &mcpbridge.Error{Class: mcpbridge.Cancelled, Detail: "the call was given up before it was sent"}
	}
	defer k.Record.Release()
	if id := k.Record.Task(); task == nil && id != "" {
		task = &tasks.Task{ID: id, Status: tasks.Working}
		self.PostUserMessage(&TaskHeard{k, task})
	}
	_, isLater := op.(*rounds.Next)                                         // the rounds before have run
	if round := k.Record.Round(); round != nil && task == nil && !isLater { // an earlier process has sent the rounds so far
		return rounds.Decode(round)
	}
	if task == nil {
		if err := k.Record.Begin(ctx); err != nil {
			return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: "the call is durable, and could not be recorded: " + err.Error(), Err: err}
		}
	}
	result, err = k.send(ctx, pause, conn, op, task, self)
	asked, asks := result.(*rounds.Asked)
	switch e := mcpbridge.AsError(err); {
	case asks && e == nil:
		k.Record.Asks(ctx, asked.Raw)
	case e == nil:
		k.Record.Ran(ctx, result)
	case !e.MayHaveRun() && isLater:
		k.Record.RoundNotSent(ctx)
	case !e.MayHaveRun():
		k.Record.NotRun(ctx)
	case e.Begun, errors.Is(err, errTaskGone): // the task is over
		k.Record.Lost(ctx, messages.NewFailure(k.Op, e.Class.Code(), e.ForCaller()))
	}
	return result, err
}

// send sends a round of the call, or follows the task that it has become.
func (k *Call) send(ctx context.Context, pause time.Duration, conn dial.Conn, op messages.Operation, task *tasks.Task, self *mailbox.Mailbox) (messages.Result, error) {
	if task == nil {
		result, err := k.Perform(ctx, pause, conn, op)
		if task, _ = result.(*tasks.Task); task == nil || err != nil {
			return result, err
		}
		if k.Record != nil {
			k.Record.Became(ctx, task.ID)
		}
		self.PostUserMessage(&TaskHeard{k, task})
	}
	return k.follow(ctx, conn, task, self)
}

// errTaskGone is in the error of a call that has become a task which the server no longer knows.
var errTaskGone = errors.New("the server no longer knows the task that the call has become")

// maxFailed is how often in a row a server may fail to answer for a task, and to take the answers to its questions.
const maxFailed = 5

// follow asks for a task until it is over.
func (k *Call) follow(ctx context.Context, conn dial.Conn, task *tasks.Task, self *mailbox.Mailbox) (messages.Result, error) {
	h := *k.Op.Head()
	h.Subscriber, h.Owner, h.Quiet, h.Extra = nil, nil, 0, nil
	asking := inputs{call: k, conn: conn, head: h}
	defer asking.stop()
	pause := task.Pause(0)
	for failed := 0; ; {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, &mcpbridge.Error{Class: mcpbridge.Cancelled, Sent: true, Err: ctx.Err()}
		case err := <-asking.done:
			if timer.Stop(); asking.over(err) != nil {
				return nil, err
			}
			if e := mcpbridge.AsError(err); e != nil && isPassing(e) {
				pause = max(task.Pause(asking.failed), e.RetryAfter)
				continue
			}
		}
		result, err := conn.Do(ctx, &tasks.Get{Header: h, ID: task.ID})
		e := mcpbridge.AsError(err)
		if next, unfinished := result.(*tasks.Task); e == nil && unfinished {
			task, failed = next, 0
			asking.ask(ctx, task)
			self.PostUserMessage(&TaskHeard{k, task})
			pause = task.Pause(0)
			continue
		}
		if failed++; e != nil && isPassing(e) && failed < maxFailed {
			pause = max(task.Pause(failed), e.RetryAfter)
			continue
		}
		last := *task
		switch last.Message = ""; {
		case e == nil:
			last.Status = tasks.Completed
		case errors.Is(err, tasks.ErrCancelled):
			last.Status = tasks.Cancelled
		case e.Begun:
			last.Status = tasks.Failed
		case e.Session == mcpbridge.Alive && (e.Code == jsonrpc.CodeInvalidParams || e.Code == jsonrpc.CodeMethodNotFound):
			return nil, &mcpbridge.Error{Class: mcpbridge.Lost, Sent: true, Detail: errTaskGone.Error(), Err: errors.Join(errTaskGone, e)}
		default:
			return nil, e
		}
		self.PostUserMessage(&TaskHeard{k, &last})
		return result, err
	}
}

// isPassing reports whether an error says only that a server did not answer this time.
func isPassing(e *mcpbridge.Error) bool {
	return e.Session == mcpbridge.Alive && !e.Begun &&
		(e.Class == mcpbridge.RateLimited || e.Class == mcpbridge.ServerError && (e.Status >= 500 || e.Code == jsonrpc.CodeInternalError))
}

// inputs answers the questions of a task while the task is followed: all that are open at a time, and then
// those that have come meanwhile.
type inputs struct {
	call *Call
	conn dial.Conn
	head messages.Header

	done   chan error // nil while nothing is asked
	asked  mcp.InputRequestMap
	failed int // how often in a row the server did not take the answers
	cancel context.CancelFunc
}

// ask asks the questions of a task that are new, unless others are being asked. Those that are no longer open are
// withdrawn.
func (q *inputs) ask(ctx context.Context, task *tasks.Task) {
	if q.done != nil {
		for key := range q.asked {
			if _, open := task.Inputs[key]; !open {
				q.cancel()
			}
		}
		return
	}
	wanted := maps.Clone(task.Inputs)
	maps.DeleteFunc(wanted, func(key string, _ mcp.InputRequest) bool { return q.call.Run.answered[key] })
	if task.Status != tasks.InputRequired || len(wanted) == 0 {
		return
	}
	q.asked, q.done = wanted, make(chan error, 1)
	ctx, q.cancel = context.WithCancel(ctx)
	update, conn, done := &tasks.Update{Header: q.head, ID: task.ID, Call: q.call.Op, Inputs: wanted}, q.conn, q.done
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- Panicked(r)
			}
		}()
		_, err := conn.Do(ctx, update)
		done <- err
	}()
}

// over notes that the questions are answered, or why not. It returns the error if the call has failed because of it.
func (q *inputs) over(err error) error {
	e := mcpbridge.AsError(err)
	q.stop()
	switch { // they are asked again if they are still open
	case e == nil:
		q.failed = 0
		if q.call.Run.answered == nil {
			q.call.Run.answered = map[string]bool{}
		}
		for key := range q.asked {
			q.call.Run.answered[key] = true
		}
	case e.Class == mcpbridge.Cancelled:
		return nil
	case isPassing(e):
		if q.failed++; q.failed < maxFailed {
			return nil
		}
	}
	return err
}

// stop withdraws the questions that are being asked.
func (q *inputs) stop() {
	if q.done != nil {
		q.cancel()
		q.done = nil
	}
}
