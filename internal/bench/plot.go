package bench

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Plot writes a chart for each table as an SVG file into a directory, which is made
// if need be. Its bars are medians, and the lines on them reach from the tenth
// percentile of the rounds to the ninetieth.
func (r *Report) Plot(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	for _, scenario := range r.scenarios() {
		for _, p := range r.pivots(scenario) {
			file := filepath.Join(dir, p.fileName()+".svg")
			if err := os.WriteFile(file, []byte(p.svg()), 0o644); err != nil {
				return fmt.Errorf("bench: %w", err)
			}
		}
	}
	return nil
}

// The measures of a chart, in pixels.
const (
	chartWidth = 760
	chartLeft  = 170 // where bars begin
	chartRight = 640 // where the longest ends
	barHeight  = 16
	barGap     = 4
	groupGap   = 30
)

// palette is a colour for each contender, by its place.
var palette = []string{"#4c6ef5", "#15aabf", "#82c91e", "#fab005", "#fd7e14", "#e64980", "#868e96", "#be4bdb"}

// svg draws a group of bars for each column.
func (p *pivot) svg() string {
	var longest float64
	for _, c := range p.columns {
		for _, one := range c.Contenders {
			longest = max(longest, one.P90, one.Median[c.Unit])
		}
	}
	scale := func(value float64) float64 {
		if longest <= 0 {
			return chartLeft
		}
		return chartLeft + max(0, value)/longest*(chartRight-chartLeft)
	}
	var b strings.Builder
	text := func(x, y float64, attributes, s string) {
		fmt.Fprintf(&b, `<text x="%s" y="%s"%s>%s</text>`+"\n", number(x), number(y), attributes, html.EscapeString(s))
	}
	y := 24.0
	text(12, y, ` font-weight="bold"`, p.title+", "+p.columns[0].Unit)
	for _, c := range p.columns {
		y += groupGap
		text(12, y-6, "", c.label())
		for _, one := range c.Contenders {
			if one.Median == nil {
				continue
			}
			value := one.Median[c.Unit]
			middle := y + barHeight/2
			text(chartLeft-8, middle+4, ` text-anchor="end"`, one.Name)
			fmt.Fprintf(&b, `<rect x="%d" y="%s" width="%s" height="%d" fill="%s"/>`+"\n",
				chartLeft, number(y), number(scale(value)-chartLeft), barHeight, palette[p.place(one.Name)%len(palette)])
			fmt.Fprintf(&b, `<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="#343a40"/>`+"\n",
				number(scale(one.P10)), number(middle), number(scale(one.P90)), number(middle))
			text(scale(max(value, one.P90))+6, middle+4, "", Format(value, c.Unit))
			y += barHeight + barGap
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%s" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="#ffffff"/>
%s</svg>
`, chartWidth, number(y+12), b.String())
}

// place returns the row of a contender.
func (p *pivot) place(name string) int {
	for i, row := range p.rows {
		if row == name {
			return i
		}
	}
	return 0
}

// number writes a coordinate, to a tenth of a pixel.
func number(v float64) string { return fmt.Sprint(math.Round(v*10) / 10) }
