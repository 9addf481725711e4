package cli

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLinesOfTheLogBeginWithMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		logger := NewLogger(&log, "info")
		time.Sleep(45 * time.Millisecond)
		logger.Info().Int("n", 1).Msg("session opened")
		logger.Debug().Msg("not written")
		time.Sleep(955 * time.Millisecond)
		logger.Info().Msg("session closed")
		require.Regexp(t, `^\d\d:\d\d:00\.045 INF session opened n=1\n\d\d:\d\d:01\.000 INF session closed\n$`, log.String())
	})
}
