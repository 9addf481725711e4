package debug

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// minSpan is the shortest time that a timeline shows, and the time around one event.
const minSpan = 10 * time.Second

// timeline is the picture of what happened to a session. The table of its events says the
// same in words.
type timeline struct {
	From, To moment
	Segments []segment
	Marks    []mark
	Text     string
}

// segment is a time in one state. Positions are in percent of the width.
type segment struct {
	X, Width string
	Kind     string // open, restarting, waiting, draining
	Label    string // in the segment or above it: what there is room for
	Title    string
}

// mark is an event. Its shape says which.
type mark struct {
	X     string
	Y     int
	Shape string // the name of a shape in session.html
	Tone  tone
	Title string
}

// lanes are the heights of the marks by their shape, so that those that come together do not
// hide each other.
var lanes = map[string]int{
	"expired": 12, "lost": 12, "gaveup": 12, "evicted": 12,
	"opened": 36, "restarting": 36, "closed": 36,
	"replayed": 84,
}

// timelineOf returns the timeline of a session from its events, the newest first. The last
// segment ends now, if the session is there. If around is not zero, the timeline shows minSpan
// around that time.
func timelineOf(newest []messages.Event, there bool, now, around time.Time) *timeline {
	if len(newest) == 0 {
		return nil
	}
	events := slices.Clone(newest)
	slices.Reverse(events)
	from, to := events[0].GetStamp().Time, events[len(events)-1].GetStamp().Time
	if there && now.After(to) {
		to = now
	}
	last := to
	if !around.IsZero() {
		from, to = around.Add(-minSpan/2), around.Add(minSpan/2)
	} else {
		from = earlier(from, to.Add(-minSpan))
		margin := to.Sub(from) / 50
		from, to = from.Add(-margin), to.Add(margin)
	}
	percent := func(d time.Duration) float64 { return 100 * float64(d) / float64(to.Sub(from)) }
	at := func(t time.Time) string { return fmt.Sprintf("%.3f%%", percent(t.Sub(from))) }

	t := &timeline{From: clock(from), To: clock(to)}
	var shown int
	var kind, label string
	var since, begun time.Time     // the segment; the last mark
	end := func(until time.Time) { // of the segment that has begun
		begin, stop := later(since, from), earlier(until, to)
		if kind == "" || !stop.After(begin) {
			return
		}
		share := percent(stop.Sub(begin))
		took := span(until.Sub(since))
		s := segment{X: at(begin), Width: fmt.Sprintf("%.3f%%", max(0.2, share)), Kind: kind, Title: fmt.Sprintf("%s from %s, for %s", label, clock(since).Text, took)}
		switch {
		case share > 15:
			s.Label = label + ", " + took
		case share > 5:
			s.Label = took
		}
		t.Segments = append(t.Segments, s)
	}
	for _, e := range events {
		row, stamp := rowOf(e), e.GetStamp()
		shape, next, text := "", kind, label
		switch e.(type) {
		case *messages.SessionOpened, *messages.SessionRestarted:
			shape, next, text = "opened", "open", fmt.Sprintf("generation %d", stamp.Generation)
		case *messages.SessionExpired:
			shape, next, text = "expired", "restarting", row.Name
		case *messages.SessionLost:
			shape, next, text = "lost", "restarting", row.Name
		case *messages.SessionRestarting:
			shape, next, text = "restarting", "restarting", row.Name
		case *messages.SessionGaveUp:
			shape, next, text = "gaveup", "waiting", row.Name
		case *messages.SessionEvicted:
			shape, next, text = "evicted", "draining", "draining"
		case *messages.SessionClosed:
			shape, next, text = "closed", "", ""
		case *messages.CallReplayed:
			shape = "replayed"
		default:
			continue
		}
		if next != kind || text != label {
			end(stamp.Time)
			kind, label, since = next, text, stamp.Time
		}
		if stamp.Time.Before(from) || stamp.Time.After(to) {
			continue
		}
		shown++
		title := row.Name + " at " + row.At.Text
		if row.Detail != "" {
			title += ": " + row.Detail
		}
		// A restart that took no time to speak of is one mark.
		if last := len(t.Marks) - 1; shape == "opened" && last >= 0 && t.Marks[last].Shape == "restarting" && percent(stamp.Time.Sub(begun)) < 1 {
			t.Marks = t.Marks[:last]
		}
		begun = stamp.Time
		t.Marks = append(t.Marks, mark{X: at(stamp.Time), Y: lanes[shape], Shape: shape, Tone: row.Tone, Title: title})
	}
	end(last)
	t.Text = fmt.Sprintf("Timeline from %s to %s with %d of the events that are listed below", t.From.Text, t.To.Text, shown)
	return t
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
