package cli

import (
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// Screen is how an output shows text. The zero value is a file or a pipe: text is plain, and lines may have any length.
type Screen struct {
	Width  int  // of a line, or 0
	Signs  bool // ✓ and ✗ are shown, and lines can be written again
	Colors bool
}

// ScreenOf returns how an output shows text.
func ScreenOf(out io.Writer) Screen {
	file, is := out.(*os.File)
	if !is || !term.IsTerminal(int(file.Fd())) {
		return Screen{}
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		width = 0
	}
	signs := os.Getenv("TERM") != "dumb" && showsColors(file)
	return Screen{Width: width, Signs: signs, Colors: signs && os.Getenv("NO_COLOR") == ""}
}

// Paint returns a text in a color.
func (s Screen) Paint(style ansi.Style, text string) string {
	if !s.Colors || text == "" {
		return text
	}
	return style.Styled(text)
}

// Wrap breaks the lines of a text between words, and indents what follows by as many spaces as the line has, and further ones. A word
// that is longer than a line stays whole, so that it can be copied.
func (s Screen) Wrap(text string, further int) string {
	if s.Width == 0 {
		return text
	}
	var all strings.Builder
	for line := range strings.Lines(text) {
		indent := len(line) - len(strings.TrimLeft(line, " ")) + further
		s.wrapLine(&all, line, 0, indent)
	}
	return trimmed(all.String())
}

// wrapLine writes a line that begins at a column, and indents what follows.
func (s Screen) wrapLine(out *strings.Builder, line string, at, indent int) {
	for word := range strings.SplitAfterSeq(line, " ") {
		if s.Width > 0 && at > indent && at+ansi.StringWidth(strings.TrimSpace(word)) > s.Width {
			out.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		}
		out.WriteString(word)
		at += ansi.StringWidth(strings.TrimSuffix(word, "\n"))
	}
}

const (
	gap = "  " // between columns
	// minText is the room that the last column of a table needs, or else its texts begin on a line of their own.
	minText = 40
	below   = 4 // their indent
)

// Table lays out rows in columns. The text of the last column may have several lines, which break between words. A cell that is wider
// than half of the screen does not make its column wider, and one that has no room left begins another line.
func (s Screen) Table(rows [][]string) string {
	widths := make([]int, len(rows[0])-1)
	for _, row := range rows {
		for i := range widths {
			if width := ansi.StringWidth(row[i]); s.Width == 0 || width <= s.Width/2 {
				widths[i] = max(widths[i], width)
			}
		}
	}
	column := 0 // of the text
	for _, width := range widths {
		column += width + len(gap)
	}
	var all strings.Builder
	for _, row := range rows {
		at, end := 0, column
		for i, width := range widths {
			if s.Width > 0 && at > 0 && at+ansi.StringWidth(row[i]) > s.Width {
				all.WriteString("\n" + strings.Repeat(" ", below))
				at, end = below, below
			}
			spaces := max(0, width-ansi.StringWidth(row[i]))
			all.WriteString(row[i] + strings.Repeat(" ", spaces) + gap)
			at += ansi.StringWidth(row[i]) + spaces + len(gap)
		}
		s.cell(&all, row[len(widths)], at, end)
		all.WriteString("\n")
	}
	return trimmed(all.String())
}

// cell writes the text of the last column, or writes it below the row if the column has too little room. at is where the line is.
func (s Screen) cell(out *strings.Builder, text string, at, column int) {
	if s.Width > 0 && (at > column || s.Width-column < minText && column+ansi.StringWidth(text) > s.Width) {
		column = below
	}
	for i, line := range strings.Split(text, "\n") {
		further := 0
		if i > 0 {
			further = len(gap)
		}
		if i > 0 || at > column {
			out.WriteString("\n" + strings.Repeat(" ", column))
			at = column
		}
		s.wrapLine(out, line, at, column+further)
	}
}

// trimmed removes the spaces at the ends of lines.
func trimmed(text string) string { return endSpaces.ReplaceAllString(text, "\n") }

var endSpaces = regexp.MustCompile(` +\n`)
