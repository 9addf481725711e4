package commands

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
)

// waiting says on a terminal what the program waits for, as soon as that takes a second, until done is called.
func waiting(p *cli.Program, what func() string) (done func()) {
	s := cli.ScreenOf(p.Err)
	if !s.Signs {
		return func() {}
	}
	return sayWaiting(p.Err, cmp.Or(s.Width, 80), what)
}

// sayWaiting writes a line again each second, and removes it in the end. What does not fit into the width is cut.
func sayWaiting(out io.Writer, width int, what func() string) (done func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		began, tick := time.Now(), time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				took := fmt.Sprintf(" (%d s)", int(time.Since(began).Seconds()))
				fmt.Fprint(out, "\r\x1b[K", ansi.Truncate(what(), width-len(took)-1, "…"), took)
			case <-over:
				fmt.Fprint(out, "\r\x1b[K")
				return
			}
		}
	}()
	return func() { close(over); <-ended }
}
