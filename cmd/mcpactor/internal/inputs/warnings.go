package inputs

import (
	"regexp"
	"strings"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/config"
)

// forGo is what package config says of an input that nobody has supplied.
var forGo = regexp.MustCompile(`"([^"\s]*)": Loader\.Input has to return it`)

// ForUser returns a text of package config for users of this program.
func ForUser(text string) string {
	return forGo.ReplaceAllString(text, `"$1": give --input $1=VALUE`)
}

// LeftOut says why servers of a file are left out, or why one of them is.
func LeftOut(file *config.File, server string) (lines []string) {
	for _, warning := range file.Warnings {
		if warning.Server != "" && (server == "" || server == warning.Server) {
			lines = append(lines, ForUser(warning.String()))
		}
	}
	return lines
}

// configError returns the error of an invalid configuration file.
func configError(err error) error { return cli.Usagef("--config: %s", OneLine(err)) }

// LogWarnings logs the fields of a file that have no effect.
func LogWarnings(log *zerolog.Logger, file *config.File) {
	for _, warning := range file.Warnings {
		log.Warn().Str("field", warning.Field).Int("line", warning.Line).Msg("configuration: " + ForUser(warning.Text))
	}
}

// OneLine returns the text of an error as one line. Joined errors have a line each.
func OneLine(err error) string { return ForUser(strings.ReplaceAll(err.Error(), "\n", "; ")) }
