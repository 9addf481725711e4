package stdio

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

func TestLinesArePassedOnWithoutSecretsWhileSomebodyFollows(t *testing.T) {
	to := new(mcpbridge.Stderr)
	l := &lines{to: to, config: &mcpbridge.Server{Env: map[string]string{"TOKEN": "hunter22-hunter22"}}}
	taken := func() (all []string) {
		for _, line := range to.Take(100) {
			all = append(all, line.Text)
		}
		return all
	}
	write := func(text string) { l.write([]byte(text)) }

	write("nobody follows\nthe token is hunter22")
	to.Follow(func() {})
	write("-hunter22 refused\nnext\n")
	require.Equal(t, []string{"next"}, taken(), "the beginning of the first line is not known")
	write("hunter22")
	write("-hunter22 is in ")
	require.Empty(t, taken())
	write("two parts\r\n\n \nlast")
	require.Equal(t, []string{"… is in two parts"}, taken())
	l.end()
	require.Equal(t, []string{"last"}, taken())

	write(strings.Repeat("x", maxLine-5) + "hunter22-hunter22\nafter\n")
	all := taken()
	require.Len(t, all, 2)
	require.NotContains(t, all[0], "hunt", "a part of a secret")
	require.LessOrEqual(t, len(all[0]), 4<<10)
	require.Equal(t, "after", all[1])
	write(strings.Repeat("\xff\x01", maxLine/2) + "\n")
	require.LessOrEqual(t, len(taken()[0]), 4<<10)

	write(strings.Repeat(strings.Repeat("y", 100), 1000))
	require.LessOrEqual(t, cap(l.buf), 3*maxLine, "one line is held")
	to.Follow(nil)
	write("\nmore\n")
	to.Follow(func() {})
	require.Empty(t, taken())
	write("and more\n")
	require.Equal(t, []string{"and more"}, taken())
}
