package wire

import (
	"fmt"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// MaxRefusal bounds how much of a refusal is read.
const MaxRefusal = 64 << 10

// defaultMaxResult is the default of [mcpbridge.Server.MaxResult].
const defaultMaxResult = 64 << 20

// MaxResult returns the bound on one message of a server, as a number that is never 0.
func MaxResult(srv *mcpbridge.Server) int {
	switch srv.MaxResult {
	case 0:
		return defaultMaxResult
	case -1:
		return int(^uint(0) >> 1)
	}
	return srv.MaxResult
}

// SDKLimit returns the bound on a message for the SDK, which takes a negative number for no bound. It is
// larger than [MaxResult], so that the bridge finds a large message first, with an error that names the cause.
func SDKLimit(srv *mcpbridge.Server) int {
	if srv.MaxResult == -1 {
		return -1
	}
	return MaxResult(srv) + MaxRefusal
}

// TooLarge returns the text of the error for a result that exceeds [MaxResult].
func TooLarge(srv *mcpbridge.Server) string {
	return fmt.Sprintf("the result has more than %d bytes (maxResult)", MaxResult(srv))
}
