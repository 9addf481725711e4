package debug

import (
	"fmt"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

const (
	barWidth   = 5 // with the gap
	histHeight = 24
)

// histogram is a picture of a histogram. Its bars are on a logarithmic scale of time.
type histogram struct {
	What          string // in a word, such as "Dials"
	Total         string // how many durations, or empty if there are none
	Width, Height int
	Bars          string // the path of all bars
	Median, P99   string
	Text          string // says the same as the picture
}

// pictureOf returns the picture of a histogram: what it is of in a word, and in more words.
func pictureOf(what, said string, h *messages.Histogram) histogram {
	total := h.Count()
	p := histogram{What: what, Width: len(h.Counts)*barWidth - 1, Height: histHeight}
	if total == 0 {
		return p
	}
	var most uint64
	var bars strings.Builder
	for _, n := range h.Counts {
		most = max(most, n)
	}
	for i, n := range h.Counts {
		if n > 0 {
			height := max(2, int(float64(n)/float64(most)*histHeight))
			fmt.Fprintf(&bars, "M%d %dV%dh%dv%dz", i*barWidth, histHeight, histHeight-height, barWidth-1, height)
		}
	}
	p.Bars = bars.String()
	p.Total, p.Median, p.P99 = count(total), quantile(h, 0.5), quantile(h, 0.99)
	p.Text = fmt.Sprintf("%s: %s in all, half within %s, 99%% within %s, %s on average", said, p.Total, p.Median, p.P99, span(h.Sum/time.Duration(total)))
	return p
}

// quantile returns the bound of the bucket that a quantile is in.
func quantile(h *messages.Histogram, q float64) string {
	left := q * float64(h.Count())
	for i, n := range h.Counts {
		if left -= float64(n); left <= 0 && i < len(h.Counts)-1 {
			return boundOf(h, i)
		}
	}
	return "> " + boundOf(h, len(h.Counts)-2)
}

// boundOf returns the bound of a bucket: 1, 2 or 5, or a multiple by ten, of a unit.
func boundOf(h *messages.Histogram, bucket int) string {
	d, _ := h.Bound(bucket)
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%g ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d/time.Millisecond)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}
