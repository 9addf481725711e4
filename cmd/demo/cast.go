package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	castWidth  = 84
	castHeight = 22
	castEvery  = 200 * time.Millisecond
)

// cast is a view that records the screen as an asciicast of version 2: a header, and an event
// for each frame. asciinema plays it, and docs/picture makes the picture of the README from it.
type cast struct {
	*screen

	mu  sync.Mutex
	out io.Writer
	err error // of the first write that failed
}

func newCast(s *show, out io.Writer) *cast {
	v := &cast{screen: newScreen(s, nil), out: out}
	v.write(map[string]any{"version": 2, "width": castWidth, "height": castHeight, "title": "mcpactor"})
	return v
}

func (v *cast) run(ctx context.Context, _ func()) {
	tick := time.NewTicker(castEvery)
	defer tick.Stop()
	for {
		v.event("\x1b[2J\x1b[H" + v.View().Content)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// end records the last frame, with the claims that were checked.
func (v *cast) end(checked []claim) {
	v.screen.end(checked)
	v.event("\x1b[2J\x1b[H" + v.View().Content)
}

func (v *cast) event(text string) {
	at := time.Since(v.began).Seconds()
	v.write([]any{json.Number(fmt.Sprintf("%.3f", at)), "o", strings.ReplaceAll(text, "\n", "\r\n")})
}

func (v *cast) write(value any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := json.NewEncoder(v.out).Encode(value); v.err == nil {
		v.err = err
	}
}
