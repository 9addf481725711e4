package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// showsColors makes a console carry out the sequences of a terminal, and reports whether it does.
func showsColors(console *os.File) bool {
	handle, mode := windows.Handle(console.Fd()), uint32(0)
	return windows.GetConsoleMode(handle, &mode) == nil &&
		windows.SetConsoleMode(handle, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
