package debug

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// maxForm bounds the size of a form.
	maxForm = 64 << 10
	// actionTimeout is how long an action may take: a restart closes a session and dials.
	actionTimeout = time.Minute
)

// action is what a form of the page does.
type action struct {
	command func(url.Values) (messages.Command, error)
	done    func(url.Values, messages.Reply) string // what was done, in words
}

// actions are the actions by their route.
var actions = map[string]action{
	"close-scope": {
		func(form url.Values) (messages.Command, error) {
			if form.Get("scope") == "" {
				return nil, errors.New("scope: is empty: name the scope")
			}
			return &messages.CloseScope{Scope: form.Get("scope")}, nil
		},
		func(form url.Values, reply messages.Reply) string {
			return closed(reply) + " of scope " + form.Get("scope")
		},
	},
	"close-session": {
		func(form url.Values) (messages.Command, error) {
			key, err := keyOf(form)
			return &messages.CloseSession{Key: key}, err
		},
		func(form url.Values, reply messages.Reply) string { return closed(reply) + ": " + name(form) },
	},
	"restart": {
		func(form url.Values) (messages.Command, error) {
			key, err := keyOf(form)
			return &messages.Restart{Key: key}, err
		},
		func(form url.Values, _ messages.Reply) string { return "Restarted: " + name(form) },
	},
	"reset": {
		func(form url.Values) (messages.Command, error) {
			return &messages.Forget{Server: form.Get("server")}, nil
		},
		func(form url.Values, _ messages.Reply) string {
			return "Reset: the next call dials " + form.Get("server") + " at once"
		},
	},
}

// name names the session that a form is about.
func name(form url.Values) string {
	key, _ := keyOf(form)
	return key.Scope + " on " + key.Server
}

// closed says how many sessions were closed, and which could not be.
func closed(reply messages.Reply) string {
	r := reply.(*messages.Closed)
	text := "Closed " + count(r.Sessions) + " sessions"
	switch r.Sessions {
	case 0:
		text = "Closed no session"
	case 1:
		text = "Closed 1 session"
	}
	for i, left := range r.Left {
		if i == 10 {
			text += ", …"
			break
		}
		text += fmt.Sprintf(", not %s (%s)", left.Key, left.Reason)
	}
	if len(r.Unanswered) > 0 {
		text += ", no answer from " + strings.Join(r.Unanswered, ", ") + ","
	}
	return text
}

// serveAction runs an action, and serves what was done.
func (h *Handler) serveAction(act action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			h.fail(w, r, http.StatusBadRequest, "the form cannot be read: "+err.Error())
			return
		}
		cmd, err := act.command(r.PostForm)
		if err != nil {
			h.fail(w, r, http.StatusBadRequest, err.Error())
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(actionTimeout + writeTimeout))
		ctx, cancel := context.WithTimeout(r.Context(), actionTimeout)
		defer cancel()
		if cmd, ok := cmd.(*messages.Restart); ok {
			// A restart of a key without a session does nothing, and its reply does not say so.
			reply, err := h.source.Client().Do(ctx, &messages.Inspect{Server: cmd.Key.Server, Scope: cmd.Key.Scope, Limit: 1})
			if snap, ok := reply.(*messages.Snapshot); err == nil && ok && snap.Total == 0 {
				h.fail(w, r, http.StatusNotFound, "there is no session of "+name(r.PostForm))
				return
			}
		}
		reply, err := h.source.Client().Do(ctx, cmd)
		if err != nil {
			h.fail(w, r, statusOf(err), err.Error())
			return
		}
		text := act.done(r.PostForm, reply) + "."
		if wantsJSON(r) {
			writeJSON(w, http.StatusOK, struct {
				Text  string         `json:"text"`
				Reply messages.Reply `json:"reply"`
			}{visible.Escape(text), reply})
			return
		}
		back := "./"
		if key, err := keyOf(r.PostForm); err == nil && r.PostForm.Has("scope") {
			back = sessionURL(key)
		}
		writeTemplate(w, http.StatusOK, "outcome", &outcome{frame{Title: "Done"}, text, back})
	}
}

// statusOf returns the HTTP status for the failure of a command.
func statusOf(err error) int {
	switch {
	case errors.Is(err, messages.CodeInvalid):
		return http.StatusBadRequest
	case errors.Is(err, messages.CodeUnknownServer):
		return http.StatusNotFound
	case errors.Is(err, messages.CodeClosed), errors.Is(err, messages.CodeDraining):
		return http.StatusServiceUnavailable
	case errors.Is(err, messages.CodeDeadline):
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}
