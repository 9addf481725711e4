package commands

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
)

// onTerminal returns what a command shows on a terminal of some columns.
func onTerminal(t *testing.T, columns uint16, args ...string) (status int, shown string) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer user.Close()
	require.NoError(t, unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0))
	require.NoError(t, unix.IoctlSetWinsize(int(user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	number, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	read := make(chan string)
	go func() {
		var all strings.Builder
		buf := make([]byte, 4096)
		for { // until the other end is closed
			n, err := user.Read(buf)
			all.Write(buf[:n])
			if err != nil {
				read <- all.String()
				return
			}
		}
	}()
	status = run(args, nil, program, program)
	require.NoError(t, program.Close())
	return status, strings.ReplaceAll(<-read, "\r\n", "\n")
}

func TestTerminalShowsSignsColorsAndLinesOfItsWidth(t *testing.T) {
	file := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"one": {"url": %q}, "down": {"url": "http://127.0.0.1:1"}}}`, servertest.Serve(t, servertest.NewTools("a"))))
	const red, green = "\x1b[31m✗\x1b[m ", "\x1b[32m✓\x1b[m "
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	status, shown := onTerminal(t, 60, "doctor", "--config", file)
	require.Equal(t, cli.ExitFailed, status)
	require.Contains(t, shown, red+"down")
	require.Contains(t, shown, green+"one")
	require.Contains(t, shown, "\n    → check that it runs, and its URL\n")
	for line := range strings.Lines(shown[strings.Index(shown, "  \x1b[1mSERVER"):]) { // after what was waited for
		if len(strings.Fields(line)) > 1 { // a path stays whole
			require.LessOrEqual(t, ansi.StringWidth(strings.TrimSuffix(line, "\n")), 60, line)
		}
	}
	_, shown = onTerminal(t, 30, "call", "--config", file, "down__x")
	require.Equal(t, "mcpactor: down: unavailable:\n  dial tcp 127.0.0.1:1:\n  connect: connection refused;\n  check that it runs, and its\n  URL\n", shown[strings.LastIndex(shown, "mcpactor"):])

	t.Setenv("NO_COLOR", "1")
	_, shown = onTerminal(t, 120, "doctor", "--config", file)
	require.Equal(t, ansi.Strip(shown[strings.Index(shown, "  SERVER"):]), shown[strings.Index(shown, "  SERVER"):])
	require.Contains(t, shown, "✗ down")

	t.Setenv("TERM", "dumb")
	_, shown = onTerminal(t, 120, "doctor", "--config", file)
	require.NotContains(t, shown, "\x1b")
	require.NotContains(t, shown, "✗")
}
