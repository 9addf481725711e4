package debug

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/maphash"
	"net/http"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

const (
	// heartbeat is how often a live page hears from us, if nothing has changed.
	heartbeat = 5 * time.Second
	// writeTimeout is how long a browser may take to receive one update.
	writeTimeout = 10 * time.Second
)

// serveLiveIndex updates the page of all sessions.
func (h *Handler) serveLiveIndex(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r.URL.Query())
	h.serveLive(w, r, func(snap *messages.Snapshot) view { return h.index(snap, q, true) })
}

// serveLiveSession updates the page of one session.
func (h *Handler) serveLiveSession(w http.ResponseWriter, r *http.Request) {
	key, err := keyOf(r.URL.Query())
	if err != nil {
		h.fail(w, r, http.StatusBadRequest, err.Error())
		return
	}
	h.serveLive(w, r, func(snap *messages.Snapshot) view { return h.session(snap, key, aroundOf(r), true) })
}

// update is the data of an event "update": the parts of the page that have changed.
type update struct {
	Now   int64  `json:"now"` // the time of the snapshot, in milliseconds
	At    string `json:"at"`  // the same as text
	Parts []part `json:"parts,omitempty"`
}

type part struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
}

// serveLive sends server-sent events until the client goes, the supervisor stops or the
// handler is closed: "update" with the parts of the page that have changed, "trouble" when
// there is no snapshot, and "stopped" when there will be none.
func (h *Handler) serveLive(w http.ResponseWriter, r *http.Request, show func(*messages.Snapshot) view) {
	select {
	case h.viewers <- struct{}{}:
		defer func() { <-h.viewers }()
	default:
		w.Header().Set("Retry-After", "10")
		h.fail(w, r, http.StatusServiceUnavailable, "too many pages are open: this one is not updated")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // of a proxy such as nginx
	if r.Method == http.MethodHead {
		return
	}
	s := &stream{w: w, control: http.NewResponseController(w)}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s.ctx = ctx
	defer context.AfterFunc(h.closed, func() {
		cancel()
		_ = s.control.SetWriteDeadline(time.Now()) // a write to a browser that is stuck ends
	})()

	ticker := time.NewTicker(snapshotAge)
	defer ticker.Stop()
	sent := map[string]uint64{} // hashes of the parts, by id
	seed := maphash.MakeSeed()
	var spoke time.Time
	for {
		snap, err := h.snapshots.get(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && stopped(err):
			_ = s.send("stopped", "the supervisor has stopped")
			return
		case err != nil:
			if s.send("trouble", err.Error()) != nil {
				return
			}
			spoke = time.Now()
		default:
			v := show(snap)
			u := update{Now: snap.Time.UnixMilli(), At: second(snap.Time).Text}
			for _, id := range v.parts() {
				var b bytes.Buffer
				if err := pages.ExecuteTemplate(&b, id, v); err != nil {
					return
				}
				if hash := maphash.Bytes(seed, b.Bytes()); sent[id] != hash {
					sent[id] = hash
					u.Parts = append(u.Parts, part{id, b.String()})
				}
			}
			if len(u.Parts) > 0 || time.Since(spoke) >= heartbeat {
				if s.send("update", u) != nil {
					return
				}
				spoke = time.Now()
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// stream is a stream of server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	ctx     context.Context
}

// send sends an event with its data as JSON, which has no line break.
func (s *stream) send(event string, data any) error {
	line, err := json.Marshal(data)
	if err != nil {
		return err
	}
	// Writers without deadlines, which are not those of net/http, are taken as they are. The
	// context is looked at after the deadline is set, so that Close is not missed.
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := s.ctx.Err(); err != nil {
		return err
	}
	for _, text := range [][]byte{[]byte("event: " + event + "\ndata: "), line, []byte("\n\n")} {
		if _, err := s.w.Write(text); err != nil {
			return err
		}
	}
	return s.control.Flush()
}
