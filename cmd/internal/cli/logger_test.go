package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinesOfTheLogBeginWithMilliseconds(t *testing.T) {
	var log strings.Builder
	logger := NewLogger(&log, "info")
	for range 20 {
		logger.Info().Int("n", 1).Msg("session opened")
	}
	logger.Debug().Msg("not written")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, lines, 20)
	whole := 0
	for _, line := range lines {
		require.Regexp(t, `^\d\d:\d\d:\d\d\.\d\d\d INF session opened n=1$`, line)
		if strings.Contains(line, ".000 ") {
			whole++
		}
	}
	require.Less(t, whole, 20)
}
