package resume

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// logged returns the output of several loggers for a value.
func logged(v any) string {
	var out bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), zerolog.NewSlogHandler(zerolog.New(&out))} {
		slog.New(h).Info("it", "value", v)
	}
	return out.String()
}

func TestRecordsSayWhatTheyMay(t *testing.T) {
	r := sample(7)
	require.Equal(t, `session with a hidden id, generation 7, endpoint "sha256:abc"`, r.String())
	require.Equal(t, "no session", mcpbridge.Resume{}.String())
	require.Contains(t, logged(r), ".generation=7")
	require.Contains(t, logged(*r), `.generation":7`)
}
