package contract

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/messages"
)

// Perform runs the call on conn after a pause, which ends with ctx. op is its operation, or a later round of it. It may block.
func (k *Call) Perform(ctx context.Context, pause time.Duration, conn dial.Conn, op messages.Operation) (result messages.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = Panicked(r)
		}
	}()
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	switch k.Op.(type) {
	case *messages.Open, *Reopen:
		info := conn.Info()
		return &messages.SessionInfo{Receipt: messages.Receipt{Odd: info.Odd}, Server: info.Server, Stateless: info.Stateless}, nil
	}
	result, err = conn.Do(ctx, op)
	if asks, _ := AsksCatalogue(k.Op); asks && err == nil {
		*ListingOf(result) = &messages.Listing{Server: conn.Info().Server, AsSent: conn.Info().AsSent, At: time.Now()}
	}
	return result, err
}
