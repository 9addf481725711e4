package supervisor

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

func TestSlogLoggerKeepsLevelsFieldsAndTypes(t *testing.T) {
	var out bytes.Buffer
	noTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	options := &slog.HandlerOptions{Level: slog.LevelDebug - 4, ReplaceAttr: noTime}
	log := SlogLogger(slog.New(slog.NewJSONHandler(&out, options)).With("app", "mine"))
	for want, say := range map[string]func(){
		`{"level":"WARN","msg":"session \"lost\"","app":"mine","server":"s","generation":18446744073709551615,"n":-3,"f":0.5,"attached":true,"elapsed":"1.5s"}`: func() {
			log.Warn().Str("server", "s").Uint64("generation", 1<<64-1).Int("n", -3).Float64("f", 0.5).Bool("attached", true).
				Stringer("elapsed", 1500*time.Millisecond).Msg(`session "lost"`)
		},
		`{"level":"DEBUG-4","msg":"","app":"mine"}`: func() { log.Trace().Msg("") },
		`{"level":"DEBUG","msg":"x","app":"mine"}`:  func() { log.Debug().Msg("x") },
		`{"level":"INFO","msg":"x","app":"mine","list":[1,"a"]}`: func() {
			log.Info().Interface("list", []any{1, "a"}).Msg("x")
		},
		`{"level":"INFO","msg":"x","app":"mine"}`: func() { log.Log().Msg("x") },
		`{"level":"ERROR","msg":"x","app":"mine","error":null}`: func() {
			log.Error().Interface("error", nil).Msg("x")
		},
	} {
		out.Reset()
		say()
		require.Equal(t, want+"\n", out.String())
	}
}

func TestSlogLoggerHasTheLevelOfTheHandler(t *testing.T) {
	var out bytes.Buffer
	var level slog.LevelVar
	for at, want := range map[slog.Level]zerolog.Level{
		slog.LevelDebug: zerolog.DebugLevel, slog.LevelInfo: zerolog.InfoLevel, slog.LevelWarn: zerolog.WarnLevel, slog.LevelError: zerolog.ErrorLevel,
	} {
		level.Set(at)
		require.Equal(t, want, SlogLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: &level}))).GetLevel())
	}
	log := SlogLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: &level})))
	level.Set(slog.LevelError + 4)
	log.Error().Msg("x")
	require.Empty(t, out.String(), "a level that is raised later holds")
	level.Set(slog.LevelError + 1)
	for _, silent := range []*slog.Logger{nil, slog.New(slog.DiscardHandler), slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: &level}))} {
		require.Equal(t, zerolog.Disabled, SlogLogger(silent).GetLevel())
	}
}

func TestSystemOfItsOwnIsQuiet(t *testing.T) {
	cfg := Config{Servers: []Server{{Name: "s", URL: "http://127.0.0.1:1/"}}}
	one, err := Start(nil, cfg)
	require.NoError(t, err)
	other, err := Start(nil, cfg)
	require.NoError(t, err)
	require.False(t, one.System().Logger().Enabled(t.Context(), slog.LevelError))
	require.NotSame(t, one.System(), other.System())
	require.NoError(t, one.Stop(t.Context()))
	require.NoError(t, other.Stop(t.Context()))
}
