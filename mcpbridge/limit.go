package mcpbridge

// maxResult returns the bound on one message, as a number that is never 0.
func maxResult(s *Server) int {
	switch s.MaxResult {
	case 0:
		return DefaultMaxResult
	case -1:
		return int(^uint(0) >> 1)
	}
	return s.MaxResult
}
