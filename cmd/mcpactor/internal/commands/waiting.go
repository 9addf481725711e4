package commands

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
)

// waiting says on a terminal what the program waits for, as soon as that takes a second, until done is called.
func waiting(p *cli.Program, what func() string) (done func()) {
	out, ok := p.Err.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return func() {}
	}
	return sayWaiting(out, what)
}

// sayWaiting writes a line again each second, and removes it in the end.
func sayWaiting(out io.Writer, what func() string) (done func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		began, tick := time.Now(), time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(out, "\r\x1b[K%s (%d s)", what(), int(time.Since(began).Seconds()))
			case <-over:
				fmt.Fprint(out, "\r\x1b[K")
				return
			}
		}
	}()
	return func() { close(over); <-ended }
}
