//go:build !unix

package faults

// Main does nothing: a Process needs Unix.
func Main() {}
