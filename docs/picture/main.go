// Command picture runs the demo, and renders what it shows as the animated SVG of
// the README. Run it from the root of the repository:
//
//	go run ./docs/picture
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

const (
	cell, line = 8.4, 18.0 // of one character, in pixels
	margin     = 14.0
	hold       = 5.0 // seconds for which the last frame stays
)

func main() {
	log.SetFlags(0)
	if err := draw("docs/demo.svg"); err != nil {
		log.Fatal(err)
	}
}

// draw runs the demo, and writes the picture of it.
func draw(to string) error {
	dir, err := os.MkdirTemp("", "picture")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is in the directory for such files
	file := filepath.Join(dir, "demo.cast")
	demo := exec.Command("go", "run", "./cmd/demo", "--agents", "24", "--max-sessions", "22", "--seed", "3", "--record", file)
	demo.Stdout, demo.Stderr = os.Stdout, os.Stderr
	if err := demo.Run(); err != nil {
		return err
	}
	cast, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	picture, err := render(cast)
	if err != nil {
		return err
	}
	return os.WriteFile(to, picture, 0o644)
}

// frame is what the screen shows from a moment on.
type frame struct {
	at    float64
	lines []string
}

// render returns an animated SVG of an asciicast, version 2. It understands the text,
// colors and clearing of the screen that the demo records, and no other sequences.
func render(cast []byte) ([]byte, error) {
	var header struct{ Version, Width, Height int }
	events := json.NewDecoder(bytes.NewReader(cast))
	if err := events.Decode(&header); err != nil || header.Version != 2 {
		return nil, fmt.Errorf("not an asciicast, version 2: %w", err)
	}
	var frames []frame
	screen := ""
	for events.More() {
		var event [3]any
		if err := events.Decode(&event); err != nil {
			return nil, err
		}
		screen += event[2].(string)
		if _, after, cleared := strings.Cut(screen, "\x1b[2J\x1b[H"); cleared {
			screen = after
		}
		lines := strings.Split(strings.TrimSuffix(screen, "\r\n"), "\r\n")
		now := frame{event[0].(float64), lines[max(0, len(lines)-header.Height):]}
		if last := len(frames) - 1; last >= 0 && now.at-frames[last].at < 0.02 { // the same moment
			now.at, frames = frames[last].at, frames[:last]
		}
		frames = append(frames, now)
	}
	return film(frames, float64(header.Width)*cell+2*margin, float64(header.Height)*line+2*margin), nil
}

// film places the frames side by side, and moves them past a window. A line that is
// in several frames is drawn once, and referred to.
func film(frames []frame, width, height float64) []byte {
	last := len(frames) - 1
	total := frames[last].at + hold
	var defs, strip, steps strings.Builder
	known := map[string]int{}
	for i, f := range frames {
		fmt.Fprintf(&steps, "%.3f%%{transform:translateX(%.0fpx)}", 100*f.at/total, -width*float64(i))
		fmt.Fprintf(&strip, `<g transform="translate(%.0f)">`, width*float64(i))
		for row, text := range f.lines {
			id, ok := known[text]
			if !ok {
				id = len(known)
				known[text] = id
				fmt.Fprintf(&defs, `<text id="l%d">%s</text>`, id, spans(text))
			}
			fmt.Fprintf(&strip, `<use href="#l%d" y="%.0f"/>`, id, float64(row+1)*line)
		}
		strip.WriteString("</g>\n")
	}
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]g %[2]g" width="%[1]g" height="%[2]g" role="img">
<title>The demo: agents work on two MCP servers while faults are injected, and every claim is checked</title>
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d0d7de;white-space:pre}
.c1{font-weight:bold}.c2{fill:#8b949e}.c31{fill:#ff7b72}.c32{fill:#56d364}.c33{fill:#e3b341}.c36{fill:#56d4dd}
#film{animation:film %.2[3]fs step-end infinite}
@keyframes film{%[4]s100%%{transform:translateX(%.0[5]fpx)}}
@media (prefers-reduced-motion:reduce){#film{animation:none;transform:translateX(%.0[5]fpx)}}
</style>
<defs>%[6]s</defs>
<rect width="100%%" height="100%%" rx="8" fill="#0d1117" stroke="#30363d"/>
<svg x="%[7]g" y="%[8]g" width="%[9]g" height="%[10]g"><g id="film">
%[11]s</g></svg>
</svg>
`, width, height, total, steps.String(), -width*float64(last), defs.String(),
		margin, margin-line*0.25, width-2*margin, height-2*margin+line*0.5, strip.String())
}

// spans renders a line with the colors of its escape sequences.
func spans(text string) string {
	var b strings.Builder
	column, classes := 0, ""
	for i, part := range strings.Split(text, "\x1b[") {
		if i > 0 {
			codes, rest, _ := strings.Cut(part, "m")
			part, classes = rest, ""
			if codes != "" && codes != "0" {
				classes = ` class="c` + strings.ReplaceAll(codes, ";", " c") + `"`
			}
		}
		if blank := len(part) - len(strings.TrimLeft(part, " ")); blank > 0 {
			part, column = part[blank:], column+blank
		}
		if n := utf8.RuneCountInString(part); n > 0 {
			trimmed := strings.TrimRight(part, " ")
			length := float64(utf8.RuneCountInString(trimmed)) * cell
			fmt.Fprintf(&b, `<tspan x="%.4g" textLength="%.4g"%s>%s</tspan>`, float64(column)*cell, length, classes, html.EscapeString(trimmed))
			column += n
		}
	}
	return b.String()
}
