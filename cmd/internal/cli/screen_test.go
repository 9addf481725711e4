package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
)

func TestLinesBreakBetweenWordsAndKeepTheirIndent(t *testing.T) {
	const text = "one two three four\n  five six seven eight\n/a/long/path/to/a/file/that/does/not/fit and\n\nend"
	require.Equal(t, text, Screen{}.Wrap(text, 2), "it is no terminal")
	require.Equal(t, text, Screen{Width: 60}.Wrap(text, 2))
	require.Equal(t, "one two three\n  four\n  five six seven\n    eight\n/a/long/path/to/a/file/that/does/not/fit\n  and\n\nend", Screen{Width: 16}.Wrap(text, 2))
	require.Equal(t, "日本 日本\n日本", Screen{Width: 10}.Wrap("日本 日本 日本", 0))
}

func TestLastColumnOfATableIsBelowTheRowIfItHasTooLittleRoom(t *testing.T) {
	rows := [][]string{{"NAME", "ABOUT"}, {"a", "short"}, {"name", strings.Repeat("word ", 9) + "\nand more words that are on a line of their own"}}
	require.Equal(t, "NAME  ABOUT\na     short\nname\n    word word word word word word word\n    word word\n    and more words that are on a line of\n      their own\n", Screen{Width: 40}.Table(rows))
	require.Equal(t, "NAME  ABOUT\na     short\nname  word word word word word word word word word\n      and more words that are on a line of their own\n", Screen{Width: 80}.Table(rows))
	require.Equal(t, "NAME\n    ABOUT\n", Screen{Width: 7}.Table([][]string{{"NAME", "ABOUT"}}))
	require.Equal(t, "NAME  ABOUT\n", Screen{}.Table([][]string{{"NAME", "ABOUT"}}))
	painted := Screen{Colors: true}
	require.Equal(t, "\x1b[1mA\x1b[m    B\nxyz  C\n", painted.Table([][]string{{painted.Paint(ansi.Style{}.Bold(), "A"), "B"}, {"xyz", "C"}}))
}

func TestCellWithoutRoomIsBelowTheRow(t *testing.T) {
	rows := [][]string{{"SERVER", "STATUS", "TIME", "ABOUT"}, {"a-name-that-is-long", "fails", "120ms", "no luck"}, {"a", "works", "5ms", "fine"}}
	require.Equal(t, "SERVER  STATUS  TIME   ABOUT\na-name-that-is-long  fails\n    120ms\n    no luck\na       works   5ms    fine\n", Screen{Width: 28}.Table(rows))
	for width := 20; width < 80; width++ {
		for line := range strings.Lines(Screen{Width: width}.Table(rows)) {
			require.LessOrEqual(t, len(line)-1, width, line)
		}
	}
}

func TestFileIsNoScreen(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer file.Close()
	require.Equal(t, Screen{}, ScreenOf(file))
	require.Equal(t, Screen{}, ScreenOf(&strings.Builder{}))
	require.Equal(t, "text", Screen{}.Paint(ansi.Style{}.Bold(), "text"))
}
