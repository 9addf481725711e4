package node

import (
	"runtime/debug"

	"github.com/rs/zerolog"
)

// logBug logs a panic of the node, without the content of the message.
func logBug(logger zerolog.Logger, reason, message any) {
	logger.Error().Interface("reason", reason).Type("message", message).Bytes("stack", debug.Stack()).Msg("cluster node panicked")
}
