package wire

import (
	"fmt"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// MaxRefusal bounds how much of a refusal is read.
const MaxRefusal = 64 << 10

// MaxResult returns the bound on one message of a server, as a number that is never 0.
func MaxResult(srv *mcpbridge.Server) int {
	switch srv.MaxResult {
	case 0:
		return mcpbridge.DefaultMaxResult
	case -1:
		return int(^uint(0) >> 1)
	}
	return srv.MaxResult
}

// SDKLimit returns the bound for the SDK's own check, where a negative number is no bound. It
// is larger than [MaxResult], so that our check comes first and its error names the cause.
func SDKLimit(srv *mcpbridge.Server) int {
	if srv.MaxResult == -1 {
		return -1
	}
	return MaxResult(srv) + MaxRefusal
}

// TooLarge says that a result exceeds [MaxResult].
func TooLarge(srv *mcpbridge.Server) string {
	return fmt.Sprintf("the result has more than %d bytes (maxResult)", MaxResult(srv))
}
