package batch

import (
	"strings"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/supervisor"
)

// settings is the content of a configuration file except for the servers and their tools.
type settings struct {
	supervisor.Config
	store string
}

func settingsOf(file *config.File) settings {
	cfg := file.Supervisor
	cfg.Servers, cfg.Logger = nil, zerolog.Logger{}
	return settings{cfg, file.Store}
}

// logWarnings logs the fields of a file that have no effect.
func logWarnings(log *zerolog.Logger, file *config.File) {
	for _, warning := range file.Warnings {
		log.Warn().Str("field", warning.Field).Int("line", warning.Line).Msg("configuration: " + forUser(warning.Text))
	}
}

// oneLine returns the text of an error as one line. Joined errors have a line each.
func oneLine(err error) string { return forUser(strings.ReplaceAll(err.Error(), "\n", "; ")) }
