package session

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/owed"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// listTimeout bounds tools/list, which brings the annotations of tools whose calls were lost. A server that does not answer it
	// must not keep the callers waiting.
	listTimeout = time.Second / 2
	// unheardListTimeout bounds it while the session is unheard: it waits for the server first.
	unheardListTimeout = 5 * time.Second
	// listenTimeout bounds one wait of an unheard session for its server. The next wait follows it. With FailFast, the
	// parked calls fail at its end.
	listenTimeout = time.Second / 2
)

// requests are those that a session sends by itself, apart from pings. Closing waits for them.
type requests struct {
	cfg     *contract.Config
	to      *mailbox.Mailbox // of the session
	running int              // how many have not returned

	cancellations owed.Cancellations // wait for a connection
}

// send runs a request, and sends its outcome to the session, which then calls returned.
func (r *requests) send(f func() any) {
	r.running++
	r.cfg.Async(r.to, f)
}

// returned notes that an outcome has come.
func (r *requests) returned() { r.running-- }

// listTools lists the tools: a call was lost, and the annotations of its tool are needed. toolsListed follows.
func (r *requests) listTools(conn dial.Conn, k *contract.Call) {
	timeout, isUnheard := listTimeout, k.Run.Lost.Session == mcpbridge.Unheard
	if isUnheard {
		timeout = unheardListTimeout
	}
	r.send(func() any {
		ctx, cancel := context.WithTimeout(messages.WithTrace(context.Background(), k.Op.Head().Trace), timeout)
		defer cancel()
		return &toolsListed{conn, contract.RunWithin(ctx, "tools/list", func(ctx context.Context) error {
			if isUnheard { // the connection waits for the server in Open only
				conn.Do(ctx, &messages.Open{}) //nolint:errcheck // tools/list fails as well
			}
			_, err := conn.Do(ctx, &messages.ListTools{})
			return err
		})}
	})
}

// cancelTasks sends the cancellations that wait for a connection, if there is one now.
func (r *requests) cancelTasks(conn dial.Conn, timeout time.Duration) {
	if conn == nil {
		return
	}
	for _, cancel := range r.cancellations {
		r.cancelTask(conn, timeout, cancel)
	}
	r.cancellations = nil
}

// cancelTask cancels a task, within a timeout. taskCancelled follows.
func (r *requests) cancelTask(conn dial.Conn, timeout time.Duration, cancel *tasks.Cancel) {
	r.send(func() any {
		contract.CloseWithin(timeout, func(ctx context.Context) error { //nolint:errcheck // the server may cancel it or not
			_, err := conn.Do(messages.WithTrace(messages.WithAttributes(ctx, cancel.Attributes), cancel.Trace), cancel)
			return err
		})
		return &taskCancelled{}
	})
}

// listen waits until a connection is heard again, by an operation that sends nothing. heardAgain follows.
func (r *requests) listen(conn dial.Conn) {
	r.send(func() any {
		ctx, cancel := context.WithCancel(context.Background()) // no deadline, before which the bridge would return
		defer time.AfterFunc(listenTimeout, cancel).Stop()
		return &heardAgain{conn, contract.RunWithin(ctx, "the wait for the server", func(ctx context.Context) error {
			_, err := conn.Do(ctx, &messages.Open{})
			if isUnheard(err) {
				<-ctx.Done() // a connection of another kind may not wait
			}
			return err
		})}
	})
}

// isUnheard reports whether an error says that a session is unheard.
func isUnheard(err error) bool {
	e := mcpbridge.AsError(err)
	return e != nil && e.Session == mcpbridge.Unheard
}
