package bridge

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

func TestLinesOfTheSDKAreCleaned(t *testing.T) {
	b := New([]mcpbridge.Server{
		{Name: "a", URL: "http://a.invalid", Headers: map[string]string{"X-Key": "first-secret"}},
		{Name: "b", Command: "b", Env: map[string]string{"KEY": "second-secret"}},
	}, nil)
	var out bytes.Buffer
	log := slog.New(b.sdkLog())
	log.Error("nobody listens")
	require.False(t, log.Enabled(t.Context(), slog.LevelError))

	b.LogTo(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})))
	for want, say := range map[string]func(){
		`level=WARN msg="excluding …" lib=go-sdk tool="… and \"…\" x" error=boom`: func() {
			log.With("tool", "first-secret and \"second-secret\"\n\u202ex").Error("excluding first-secret", "error", errors.New("boom"))
		},
		`level=ERROR msg="jsonrpc2 internal error" lib=go-sdk`: func() {
			log.Error("jsonrpc2 internal error", "error", errors.New("a result of a call"))
		},
		`level=WARN msg=x lib=go-sdk n=3`: func() { log.WithGroup("g").Warn("x", "n", 3) },
	} {
		out.Reset()
		say()
		require.Equal(t, want+"\n", out.String())
	}
	out.Reset()
	log.Info("below the level")
	require.Empty(t, out.String())
}
