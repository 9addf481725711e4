//go:build !windows

package cli

import "os"

// showsColors reports whether a terminal carries out its sequences.
func showsColors(*os.File) bool { return true }
