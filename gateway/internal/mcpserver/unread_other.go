//go:build !unix

package mcpserver

import "io"

// isUnread returns false: this system cannot tell whether anybody reads what is written.
func isUnread(io.Writer) bool { return false }
