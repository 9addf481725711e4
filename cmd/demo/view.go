package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/mcpactor/mcpactor/messages"
)

// claim is something that must hold at the end, and what speaks against it.
type claim struct {
	text  string
	wrong []string
}

// describe puts an event into words.
func describe(event messages.Event) string {
	key := event.GetStamp().Key
	switch e := event.(type) {
	case *messages.SessionOpened:
		return fmt.Sprintf("%s opened in %v, generation %d", key, short(e.Elapsed), e.Generation)
	case *messages.SessionExpired:
		return fmt.Sprintf("%s expired", key)
	case *messages.SessionLost:
		return fmt.Sprintf("%s lost its connection", key)
	case *messages.SessionRestarting:
		return fmt.Sprintf("%s restarts in %v, attempt %d", key, short(e.Delay), e.Attempt)
	case *messages.SessionRestarted:
		if e.Attached {
			return fmt.Sprintf("%s attached again after %v, its state kept", key, short(e.Elapsed))
		}
		return fmt.Sprintf("%s rebuilt after %v, generation %d", key, short(e.Elapsed), e.Generation)
	case *messages.SessionGaveUp:
		return fmt.Sprintf("%s given up", key)
	case *messages.SessionEvicted:
		return fmt.Sprintf("%s evicted (%s)", key, e.Reason)
	case *messages.SessionClosed:
		return fmt.Sprintf("%s closed", key)
	}
	return fmt.Sprintf("%s %T", key, event)
}

func short(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// lines is the view for files and pipes: a line for each thing that happens.
type lines struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
}

func newLines(out io.Writer) *lines { return &lines{out: out, began: time.Now()} }

func (v *lines) note(fault bool, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	mark := "  "
	if fault {
		mark = "! "
	}
	fmt.Fprintf(v.out, "%6.2fs %s%s\n", time.Since(v.began).Seconds(), mark, text)
}

func (v *lines) run(ctx context.Context, _ func()) { <-ctx.Done() }

// screen is the view for terminals: a cell for each agent, and what happened
// last.
type screen struct {
	show *show
	out  *os.File
	stop func()

	mu    sync.Mutex
	notes []string
	began time.Time
}

// shownNotes is how many notes the screen has room for.
const shownNotes = 12

var (
	faint = lipgloss.NewStyle().Faint(true)
	bold  = lipgloss.NewStyle().Bold(true)
	alarm = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Yellow)
	bad   = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Red)
	good  = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Green)

	faces = map[mood]string{
		resting:  good.Render("●"),
		waiting:  faint.Render("◌"),
		restored: lipgloss.NewStyle().Foreground(lipgloss.Cyan).Render("◆"),
		failed:   bad.Render("✗"),
		finished: faint.Render("●"),
	}
)

func newScreen(s *show, out *os.File) *screen {
	return &screen{show: s, out: out, began: time.Now()}
}

func (v *screen) note(fault bool, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	text = fmt.Sprintf("%6.2fs  %s", time.Since(v.began).Seconds(), text)
	if fault {
		text = alarm.Render(text)
	}
	v.notes = append(v.notes, text)
	v.notes = v.notes[max(0, len(v.notes)-shownNotes):]
}

func (v *screen) run(ctx context.Context, interrupt func()) {
	v.stop = interrupt
	p := tea.NewProgram(v, tea.WithOutput(v.out), tea.WithoutSignalHandler())
	defer context.AfterFunc(ctx, p.Quit)()
	if _, err := p.Run(); err != nil {
		fmt.Fprintln(v.out, "demo:", err)
	}
}

type redraw struct{}

func again() tea.Cmd {
	return tea.Tick(100*time.Millisecond, func(time.Time) tea.Msg { return redraw{} })
}

// Init, Update and View make the screen a program of Bubble Tea.

func (v *screen) Init() tea.Cmd { return again() }

func (v *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case redraw:
		return v, again()
	case tea.KeyPressMsg:
		if key := msg.String(); key == "q" || key == "esc" || key == "ctrl+c" {
			v.stop()
		}
	}
	return v, nil
}

func (v *screen) View() tea.View {
	var b strings.Builder
	b.WriteString(bold.Render("mcpactor") + faint.Render("  every cell is an agent with a session of its own; q ends the show") + "\n\n")
	for i := range v.show.moods {
		b.WriteString(faces[mood(v.show.moods[i].Load())] + " ")
		if i%36 == 35 {
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(&b, "\n%s answered   %s waiting   %s rebuilt   %s failed, and told\n\n", faces[resting], faces[waiting], faces[restored], faces[failed])
	l := v.show.ledger
	l.mu.Lock()
	fmt.Fprintf(&b, "%d calls  %d answered  %d replayed  %d lost, and told  %d/%d sessions\n\n",
		len(l.calls), l.answered, l.replayed, l.lost, l.sessions, v.show.MaxSessions)
	l.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	b.WriteString(strings.Join(v.notes, "\n") + "\n")
	return tea.NewView(b.String())
}

// report prints the summary, and reports whether all claims hold.
func (s *show) report(out io.Writer, claims []claim) (hold bool) {
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(out, "\n%d calls, %d answered, %d replayed; slowest %v; seed %d\n", len(l.calls), l.answered, l.replayed, short(l.slowest), s.Seed)
	if s.final != nil {
		n := s.final.Counters
		fmt.Fprintf(out, "%d dials, %d sessions opened, %d expired, %d lost, %d restarts, %d evicted\n", n.Dials, n.Opened, n.Expired, n.Lost, n.Restarts, n.Evicted)
	}
	for _, code := range slices.SortedFunc(maps.Keys(l.failures), cmp.Compare) {
		fmt.Fprintf(out, "%d failures: %s\n", l.failures[code], code)
	}
	fmt.Fprintln(out)
	hold = true
	for _, c := range claims {
		if len(c.wrong) == 0 {
			fmt.Fprintf(out, "  ok        %s\n", c.text)
			continue
		}
		hold = false
		fmt.Fprintf(out, "  VIOLATED  %s\n", c.text)
		for _, w := range c.wrong[:min(len(c.wrong), 10)] {
			fmt.Fprintf(out, "            %s\n", w)
		}
	}
	return hold
}
