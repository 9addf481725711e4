package bridge

import (
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// maxResult returns the bound on one message, as a number that is never 0.
func maxResult(s *mcpbridge.Server) int {
	switch s.MaxResult {
	case 0:
		return mcpbridge.DefaultMaxResult
	case -1:
		return int(^uint(0) >> 1)
	}
	return s.MaxResult
}
