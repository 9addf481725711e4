//go:build !unix

package stdioserver

// Main does nothing: a Process needs Unix.
func Main() {}
