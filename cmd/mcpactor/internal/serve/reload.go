package serve

import (
	"context"
	"os"

	"golang.org/x/term"

	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/messages"
)

// hangups returns the signals SIGHUP after which the configuration file is to be loaded again, or nil if such a signal ends the program: there
// is no file, or the signal may say that the terminal is gone.
func (cmd *Serve) hangups() (signals <-chan os.Signal, ignore func()) {
	if cmd.Config == "" || term.IsTerminal(int(os.Stderr.Fd())) {
		return nil, func() {}
	}
	return inputs.Hangups()
}

// reload serves what the configuration file and the lock file say whenever one of them has changed, and after a signal, until end is called.
func (cmd *Serve) reload(plan *plan, r *running, hangups <-chan os.Signal) (end func()) {
	accepted := make(chan struct{}, 1)
	endPins := cmd.Pins.Watch(&plan.supervisor.Logger, func() {
		r.gateway.Review()
		select {
		case accepted <- struct{}{}: // a server may be another one
		default:
		}
	})
	if plan.reloader == nil {
		return endPins
	}
	plan.reloader.Log = &plan.supervisor.Logger
	endFile := plan.reloader.Run(hangups, accepted, true, func(ctx context.Context, file *config.File) (*messages.Closed, error) {
		if err := cmd.checkFile(file); err != nil {
			return nil, err
		}
		servers, _ := cmd.shared(file.Tools) // the file may no longer have a server that the command line names
		closed, err := r.supervisor.Reload(ctx, plan.prepared(file.Supervisor.Servers))
		if err == nil {
			plan.file.Store(file)
			err = r.gateway.Reload(servers, inputs.LeftOut(file, ""))
		}
		return closed, err
	})
	return func() {
		endPins()
		endFile()
	}
}
