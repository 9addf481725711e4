package debug

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// maxEvents is how many events are kept, of all sessions together.
const maxEvents = 1000

// ring keeps the last maxEvents events about sessions. Notifications of servers are not
// kept: they contain what a server likes, and a server that sends many would displace the
// events.
type ring struct {
	mu     sync.Mutex
	events []messages.Event // a ring when it is full
	next   int              // where the next event goes
}

// add adds an event. It is called by the EventStream, in the order of the events.
func (r *ring) add(e messages.Event) {
	if _, notification := e.(messages.Notification); notification {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) < maxEvents {
		r.events = append(r.events, e)
		return
	}
	r.events[r.next] = e
	r.next = (r.next + 1) % maxEvents
}

// latest returns the last events that are selected, at most limit, the newest first.
func (r *ring) latest(limit int, selected func(messages.Stamp) bool) (events []messages.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.events {
		e := r.events[(r.next+2*len(r.events)-1-i)%len(r.events)]
		if selected(e.GetStamp()) {
			if events = append(events, e); len(events) == limit {
				break
			}
		}
	}
	return events
}

// tone is how an event or a state is coloured. Its name says the same.
type tone string

const (
	good    tone = "good"
	working tone = "working"
	warning tone = "warning"
	bad     tone = "bad"
	neutral tone = "neutral"
)

// eventRow is an event as the page shows it.
type eventRow struct {
	At         moment
	Name       string
	Tone       tone
	Key        messages.Key
	URL        string // of the page of the session, or empty
	Member     string // of the cluster, or the id of the supervisor
	Generation uint64
	Detail     string
}

// rowOf returns an event as the page shows it.
func rowOf(e messages.Event) eventRow {
	stamp := e.GetStamp()
	row := eventRow{At: clock(stamp.Time), Key: stamp.Key, Member: stamp.Supervisor, Generation: stamp.Generation}
	if stamp.Key.Server != "" {
		row.URL = sessionURL(stamp.Key)
	}
	switch e := e.(type) {
	case *messages.SessionOpened:
		row.Name, row.Tone, row.Detail = "opened", good, "in "+span(e.Elapsed)+protocol(e.Protocol)
		if e.Attached {
			row.Detail += ", resumed from the store"
		}
	case *messages.SessionExpired:
		row.Name, row.Tone, row.Detail = "expired", bad, e.Cause
	case *messages.SessionLost:
		row.Name, row.Tone, row.Detail = "lost", bad, e.Cause
	case *messages.SessionRestarting:
		row.Name, row.Tone, row.Detail = "restarting", working, fmt.Sprintf("failure %d, ", e.Attempt)+after(e.Delay)+because(e.Cause)
	case *messages.SessionRestarted:
		row.Name, row.Tone, row.Detail = "restarted", good, "after "+span(e.Elapsed)+protocol(e.Protocol)
		if e.Attached {
			row.Detail += ", resumed with its state"
		} else if e.Lifetime > 0 {
			row.Detail += ", the session before was open for " + span(e.Lifetime)
		}
	case *messages.CallReplayed:
		row.Name, row.Tone, row.Detail = "call replayed", warning, strings.TrimSpace(e.Method+" "+e.Target)+fmt.Sprintf(", run %d", e.Attempt)
	case *messages.TaskChanged:
		row.Name, row.Tone, row.Detail = "task "+strings.ReplaceAll(e.Status, "_", " "), taskTones[e.Status], strings.TrimSpace(e.Operation.Method+" "+e.Operation.Target)
	case *messages.SessionGaveUp:
		row.Name, row.Tone, row.Detail = "given up", bad, "until "+e.RetryAt.UTC().Format(time.TimeOnly)+because(e.Cause)
	case *messages.SessionEvicted:
		row.Name, row.Tone, row.Detail = "evicted", warning, evictions[e.Reason]
	case *messages.SessionClosed:
		row.Name, row.Tone = "closed", neutral
		if e.Lifetime > 0 {
			row.Detail = "was open for " + span(e.Lifetime)
		}
		if e.Cause != "" {
			row.Detail = "not closed on the server" + because(e.Cause)
		}
	case *messages.HandleMinted:
		row.Name, row.Tone, row.Detail = "handle minted", good, e.Mint
	case *messages.HandleReleased:
		row.Name, row.Tone, row.Detail = "handle released", neutral, e.Mint
		if e.Gone {
			row.Detail += ", the server did not know it any more"
		}
	case *messages.HandleLost:
		row.Name, row.Tone, row.Detail = "handle lost", bad, e.Mint+because(e.Cause)
	case *messages.HandleLeft:
		row.Name, row.Tone, row.Detail = "handle left", warning, e.Mint+because(e.Reason)
	case *messages.OwnerTerminated:
		row.Name, row.Tone = "owner terminated", neutral
		row.Detail = fmt.Sprintf("%s; %d operations cancelled; scopes: %s", e.Owner, e.Cancelled, strings.Join(e.Scopes, ", "))
	default:
		row.Name, row.Tone = strings.ReplaceAll(e.EventName(), "_", " "), neutral
	}
	return row
}

// taskTones are the colours of the states of tasks.
var taskTones = map[string]tone{"working": working, "input_required": warning, "completed": good, "failed": bad, "cancelled": neutral}

// evictions says why a session was evicted.
var evictions = map[messages.EvictReason]string{
	messages.EvictCap:         "for the cap of all sessions",
	messages.EvictServerCap:   "for the cap of the server",
	messages.EvictTenantQuota: "for the quota of the tenant",
	messages.EvictIdle:        "idle",
}

func after(d time.Duration) string {
	if d <= 0 {
		return "at once"
	}
	return "in " + span(d)
}

func because(cause string) string {
	if cause == "" {
		return ""
	}
	return ": " + cause
}

func protocol(version string) string {
	if version == "" {
		return ""
	}
	return ", protocol " + version
}
