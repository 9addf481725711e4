//go:build !unix

package wire

import "net"

// hasEnded returns false: that is unknown here until net/http has read the end.
func hasEnded(net.Conn) bool { return false }
