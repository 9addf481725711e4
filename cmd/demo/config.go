package main

import (
	"strings"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/supervisor"
)

// settings are what a file says beside the servers.
type settings struct {
	supervisor.Config
	store string
}

func settingsOf(file *config.File) settings {
	cfg := file.Supervisor
	cfg.Servers, cfg.Logger = nil, zerolog.Logger{}
	return settings{cfg, file.Store}
}

// warn logs the fields of a file that have no effect.
func warn(log *zerolog.Logger, file *config.File) {
	for _, warning := range file.Warnings {
		log.Warn().Str("field", warning.Field).Int("line", warning.Line).Msg("configuration: " + warning.Text)
	}
}

// joined makes of the errors of several fields one line.
func joined(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
