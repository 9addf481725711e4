package exec

import (
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
