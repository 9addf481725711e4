package debug

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/internal/visible"
)

// count returns a number with its digits in groups of three.
func count[N int | uint64](n N) string {
	digits := strconv.FormatUint(uint64(max(0, n)), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// span returns a duration as people say it, such as "350 ms" or "5 min". live.js has the
// same for whole seconds.
func span(d time.Duration) string {
	switch s := d.Seconds(); {
	case d < 0:
		return "0 s"
	case d < time.Millisecond:
		return fmt.Sprintf("%.1f ms", s*1000)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", s*1000)
	case d < 10*time.Second && d%time.Second != 0:
		return fmt.Sprintf("%.1f s", s)
	default:
		return seconds(d)
	}
}

// seconds returns a duration in whole seconds, or in a larger unit.
func seconds(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", max(0, d/time.Second))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d d", d/(24*time.Hour))
}

// moment is a time as the page shows it. The page replaces the text of a moment with a Rel
// each second, so that live updates leave it out: they do not change while time passes only.
type moment struct {
	Exact string // for the attribute, or empty if there is no time
	Rel   string // "ago", "for" or "in": the text is relative to now
	Text  string
}

// second returns the time of day in whole seconds.
func second(at time.Time) moment {
	return moment{Exact: exact(at), Text: at.UTC().Format(time.TimeOnly)}
}

// clock returns the time of day.
func clock(at time.Time) moment {
	return moment{Exact: exact(at), Text: at.UTC().Format("15:04:05.000")}
}

// ago returns how long ago a time was. A zero now leaves the text to the page.
func ago(at, now time.Time) moment {
	if at.IsZero() {
		return moment{}
	}
	m := moment{Exact: exact(at), Rel: "ago"}
	if !now.IsZero() {
		m.Text = seconds(now.Sub(at)) + " ago"
	}
	return m
}

// lasting returns how long something has lasted since a time. A zero now leaves the text to the
// page.
func lasting(since, now time.Time) moment {
	if since.IsZero() {
		return moment{}
	}
	m := moment{Exact: exact(since), Rel: "for"}
	if !now.IsZero() {
		m.Text = "for " + seconds(now.Sub(since))
	}
	return m
}

// in returns how far away a time is. A zero now leaves the text to the page.
func in(at, now time.Time) moment {
	if at.IsZero() {
		return moment{}
	}
	m := moment{Exact: exact(at), Rel: "in"}
	if !now.IsZero() {
		m.Text = "now"
		if left := at.Sub(now); left > 0 {
			m.Text = "in " + seconds(left+time.Second-1)
		}
	}
	return m
}

// show returns a name with all characters that cannot be seen written as their code points, so that
// names that differ look different. Blanks are among them where a name begins or ends with them.
func show(name string) string {
	name = visible.Escape(name)
	inner := strings.Trim(name, " ")
	if inner == name {
		return name
	}
	const blank = "‹U+0020›"
	before, after, _ := strings.Cut(name, inner)
	if inner == "" {
		before, after = name, ""
	}
	return strings.Repeat(blank, len(before)) + inner + strings.Repeat(blank, len(after))
}

func exact(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }
