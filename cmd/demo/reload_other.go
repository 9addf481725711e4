//go:build !unix

package main

import "os"

// hangups returns none: there is no such signal here.
func hangups() (signals <-chan os.Signal, ignore func()) { return nil, func() {} }
