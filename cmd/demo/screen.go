package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// screen is the view for terminals. It shows a cell for each agent, and the last notes.
type screen struct {
	show *show
	out  *os.File
	stop func()

	mu    sync.Mutex
	notes []string
	began time.Time
}

// shownNotes is how many notes the screen shows.
const shownNotes = 12

var (
	faint = lipgloss.NewStyle().Faint(true)
	bold  = lipgloss.NewStyle().Bold(true)
	alarm = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Yellow)
	bad   = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Red)
	good  = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Green)

	symbols = map[status]string{
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

// redraw makes the screen draw itself again.
type redraw struct{}

func redrawSoon() tea.Cmd {
	return tea.Tick(100*time.Millisecond, func(time.Time) tea.Msg { return redraw{} })
}

// Init starts the drawing. With Update and View, screen is a model of Bubble Tea.
func (v *screen) Init() tea.Cmd { return redrawSoon() }

// Update handles keys and redraws.
func (v *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case redraw:
		return v, redrawSoon()
	case tea.KeyPressMsg:
		if key := msg.String(); key == "q" || key == "esc" || key == "ctrl+c" {
			v.stop()
		}
	}
	return v, nil
}

// View returns the screen.
func (v *screen) View() tea.View {
	var b strings.Builder
	b.WriteString(bold.Render("mcpactor") + faint.Render("  every cell is an agent with its own session; q ends the show") + "\n\n")
	for i := range v.show.statuses {
		b.WriteString(symbols[status(v.show.statuses[i].Load())] + " ")
		if i%36 == 35 {
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(&b, "\n%s answered   %s waiting   %s replayed or rebuilt   %s failed\n\n", symbols[resting], symbols[waiting], symbols[restored], symbols[failed])
	r := v.show.verifier
	r.mu.Lock()
	fmt.Fprintf(&b, "%d calls  %d answered  %d replayed  %d lost  %d/%d sessions\n\n",
		len(r.calls), r.answered, r.replayed, r.lost, r.sessions, v.show.MaxSessions)
	r.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	b.WriteString(strings.Join(v.notes, "\n") + "\n")
	return tea.NewView(b.String())
}
