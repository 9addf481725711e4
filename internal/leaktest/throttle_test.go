package leaktest

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestThrottleIsTheGoroutineThatADeadLetterLeaves(t *testing.T) {
	before := goleak.IgnoreCurrent()
	system := actor.NewActorSystem(func(config *actor.Config) {
		config.LoggerFactory = func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
		config.DeadLetterThrottleInterval = time.Hour
	})
	require.NoError(t, goleak.Find(before))
	system.Root.Send(system.NewLocalPID("nobody"), "hello")
	require.Error(t, goleak.Find(before), "no longer needed: remove Throttle")
	require.NoError(t, goleak.Find(append(Throttle, before)...))
}
