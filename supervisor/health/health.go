package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// timeout is how long the supervisor may take to answer.
const timeout = time.Second

// Live returns a handler for a liveness probe. It answers with 200 if the supervisor answers
// within a second, and with 503 otherwise, also after it has stopped. The state of the servers
// makes no difference.
func Live(sup *supervisor.Supervisor) http.Handler {
	return newHandler(sup, func(*messages.Snapshot) (reasons []string) { return nil })
}

// Ready returns a handler for a readiness probe. It answers with 200 if the supervisor answers
// within a second, is not stopping, and none of the required servers is down. In a cluster, the
// member must not be fenced either. Otherwise it answers with 503. A required server that no call
// has needed yet is not down; one that is not configured, such as after a reload, counts as down.
func Ready(sup *supervisor.Supervisor, required ...string) http.Handler {
	required = slices.Clone(required)
	return newHandler(sup, func(snap *messages.Snapshot) (reasons []string) {
		if snap.Stopping {
			reasons = append(reasons, "the supervisor is stopping")
		}
		for _, m := range snap.Members {
			if m.Fenced != "" {
				reasons = append(reasons, "the member starts no calls: "+m.Fenced)
			}
		}
		for _, name := range required {
			at := slices.IndexFunc(snap.Servers, func(s messages.ServerSnapshot) bool { return s.Name == name })
			switch {
			case at < 0:
				reasons = append(reasons, fmt.Sprintf("server %s is not configured", name))
			case snap.Servers[at].Health == messages.HealthDown:
				reasons = append(reasons, fmt.Sprintf("server %s is down", name))
			}
		}
		return reasons
	})
}

// handler is the handler of a probe.
type handler struct {
	inspect func(context.Context) (*messages.Snapshot, error)
	failing func(*messages.Snapshot) (reasons []string) // nothing if the probe succeeds
	group   singleflight.Group
}

func newHandler(sup *supervisor.Supervisor, failing func(*messages.Snapshot) []string) *handler {
	return &handler{failing: failing, inspect: func(ctx context.Context) (*messages.Snapshot, error) {
		reply, err := sup.Client().Do(ctx, &messages.Inspect{Limit: 1}) // no limit lists no session
		if err != nil {
			return nil, err
		}
		return reply.(*messages.Snapshot), nil
	}}
}

// report is the body of an answer.
type report struct {
	OK bool `json:"ok"`
	// Reasons say why the probe has failed.
	Reasons []string `json:"reasons,omitempty"`
	// Down are all servers that are down.
	Down []down `json:"down,omitempty"`
}

// down is a server that is down.
type down struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
	Cause string    `json:"cause,omitempty"`
}

// ServeHTTP answers a probe.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	asked := h.group.DoChan("", func() (any, error) { return h.ask(), nil })
	select {
	case <-r.Context().Done(): // the client has gone, or whoever passed the request on has set a deadline
		(&report{Reasons: []string{noAnswer}}).write(w, r)
	case answer := <-asked:
		answer.Val.(*report).write(w, r)
	}
}

// ask asks the supervisor.
func (h *handler) ask() *report {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	snap, err := h.inspect(ctx)
	if err != nil {
		return &report{Reasons: []string{reasonOf(err)}}
	}
	answer := &report{Reasons: h.failing(snap)}
	answer.OK = len(answer.Reasons) == 0
	for _, s := range snap.Servers {
		if s.Health == messages.HealthDown {
			answer.Down = append(answer.Down, down{s.Name, s.Since, s.Cause})
		}
	}
	return answer
}

// noAnswer is the reason while the supervisor may still answer.
const noAnswer = "the supervisor does not answer"

// reasonOf says why there is no answer.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, messages.CodeClosed):
		return "the supervisor has stopped"
	case errors.Is(err, messages.CodeInvalid):
		return "the supervisor is not started"
	}
	return noAnswer
}

// write writes the answer as JSON or as text.
func (a *report) write(w http.ResponseWriter, r *http.Request) {
	asJSON := r.URL.Query().Get("format") == "json" || strings.Contains(r.Header.Get("Accept"), "application/json")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if asJSON {
		w.Header().Set("Content-Type", "application/json")
	}
	if !a.OK {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if asJSON {
		json.NewEncoder(w).Encode(a) //nolint:errcheck // the client has gone
		return
	}
	io.WriteString(w, a.text()) //nolint:errcheck // the client has gone
}

// text returns the answer in a few lines.
func (a *report) text() string {
	var b strings.Builder
	if a.OK {
		b.WriteString("ok\n")
	}
	for _, reason := range a.Reasons {
		fmt.Fprintln(&b, reason)
	}
	for _, s := range a.Down {
		fmt.Fprintf(&b, "down: %s since %s: %s\n", s.Name, s.Since.UTC().Format(time.RFC3339), s.Cause)
	}
	return b.String()
}
