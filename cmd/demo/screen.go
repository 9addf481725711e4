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
	"github.com/charmbracelet/x/ansi"
)

// screen is the view for terminals. It shows a cell for each agent, the last faults, and the
// claims that are checked at the end.
type screen struct {
	show          *show
	out           *os.File
	stop          func()
	width, height int // of the terminal

	mu      sync.Mutex
	faults  []string
	claims  []claim
	checked bool // the claims are
	began   time.Time
}

// shownFaults is how many faults the screen shows.
const shownFaults = 6

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
		finished: good.Render("●"),
	}
)

func newScreen(s *show, out *os.File) *screen {
	return &screen{show: s, out: out, began: time.Now(), claims: claimsOf(s.MaxSessions), width: castWidth, height: castHeight}
}

func (v *screen) note(fault bool, text string) {
	if !fault {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults = append(v.faults, alarm.Render(fmt.Sprintf("%6.2fs  %s", time.Since(v.began).Seconds(), text)))
	v.faults = v.faults[max(0, len(v.faults)-shownFaults):]
}

// end replaces the claims by those that were checked.
func (v *screen) end(checked []claim) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.claims, v.checked = checked, true
}

// mark returns the sign of a claim.
func (v *screen) mark(c claim) string {
	if !v.checked {
		return faint.Render("·")
	}
	return c.mark()
}

func (v *screen) run(ctx context.Context, interrupt func()) {
	v.stop = interrupt
	p := tea.NewProgram(v, tea.WithOutput(v.out), tea.WithoutSignalHandler())
	defer context.AfterFunc(ctx, func() {
		v.end(nil) // the report has them
		p.Quit()
	})()
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
	case tea.WindowSizeMsg:
		v.width, v.height = msg.Width, msg.Height
	case redraw:
		return v, redrawSoon()
	case tea.KeyPressMsg:
		if key := msg.String(); key == "q" || key == "esc" || key == "ctrl+c" {
			v.stop()
		}
	}
	return v, nil
}

// View returns the screen. Everything but the claims, the older faults and the last agents is
// visible in a terminal of any usual size.
func (v *screen) View() tea.View {
	var lines []string
	title := bold.Render("mcpactor") + faint.Render("  every cell is an agent with its own session; q ends the show")
	lines = append(lines, title, v.show.page)
	lines = append(lines, v.cells(v.height-fixedLines-minFaults)...)
	lines = append(lines, fmt.Sprintf("%s answered   %s waiting   %s replayed or rebuilt   %s failed", symbols[resting], symbols[waiting], symbols[restored], symbols[failed]), "")
	r := v.show.verifier
	r.mu.Lock()
	lines = append(lines, fmt.Sprintf("%d calls  %d answered  %d replayed  %d lost  %d/%d sessions", r.sentCalls, r.answered, r.replayed, r.lost, r.sessions, v.show.MaxSessions), "")
	r.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	room := max(0, v.height-len(lines)-1)
	if n := len(v.claims); n > 0 && room >= shownFaults+1+n {
		lines = append(lines, v.faults...)
		lines = append(lines, make([]string, shownFaults-len(v.faults)+1)...) // the claims stay where they are
		for _, c := range v.claims {
			lines = append(lines, "  "+v.mark(c)+"  "+c.text)
		}
	} else {
		lines = append(lines, v.faults[max(0, len(v.faults)-room):]...)
	}
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], v.width, "…")
	}
	return tea.NewView(strings.Join(lines, "\n") + "\n")
}

const (
	// fixedLines is how many lines the screen has beside the cells, the faults and the claims,
	// with the empty one at its end.
	fixedLines = 7
	// minFaults is how many faults are shown, however many agents there are.
	minFaults = 3
	// cellsInLine is how many cells a line has, unless there are too many lines.
	cellsInLine = 36
)

// cells returns lines with a cell for each agent, at most a number of them. Cells are apart
// from each other if they all fit.
func (v *screen) cells(most int) (lines []string) {
	agents, inLine, gap := len(v.show.statuses), max(1, min(cellsInLine, v.width/2)), " "
	if (agents+inLine-1)/inLine > most {
		inLine, gap = v.width, ""
	}
	shown := min(agents, max(0, most)*inLine)
	if shown < agents {
		shown = max(0, shown-inLine) // the last line says how many are left out
	}
	for first := 0; first < shown; first += inLine {
		var b strings.Builder
		for i := first; i < min(first+inLine, shown); i++ {
			b.WriteString(symbols[status(v.show.statuses[i].Load())] + gap)
		}
		lines = append(lines, b.String())
	}
	if shown < agents {
		lines = append(lines, faint.Render(fmt.Sprintf("and %d agents more", agents-shown)))
	}
	return lines
}
