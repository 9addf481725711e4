package stdio

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/stderr"
	"github.com/mcpactor/mcpactor/messages"
)

func TestLinesArePassedOnWithoutSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(strings.Builder)
		to := stderr.New(nil).Open(messages.Key{}, func(messages.Key) io.Writer { return out })
		defer to.Close()
		l := &lines{to: to, config: &mcpbridge.Server{Env: map[string]string{"TOKEN": "hunter22-hunter22"}}}
		write := func(text string) { l.write([]byte(text)) }
		taken := func() []string {
			synctest.Wait()
			defer out.Reset()
			return strings.SplitAfter(out.String(), "\n")
		}

		write("hunter22")
		write("-hunter22 is in ")
		require.Equal(t, []string{""}, taken())
		write("two parts\r\n\n \nlast")
		require.Equal(t, []string{"… is in two parts\n", ""}, taken())
		l.end()
		require.Equal(t, []string{"last\n", ""}, taken())

		write(strings.Repeat("x", maxLine-5) + "hunter22-hunter22\nafter\n")
		all := taken()
		require.Len(t, all, 3)
		require.NotContains(t, all[0], "hunt", "a part of a secret")
		require.LessOrEqual(t, len(all[0]), 4<<10+1)
		require.Equal(t, "after\n", all[1])
		write(strings.Repeat("\xff\x01", maxLine/2) + "\n")
		require.LessOrEqual(t, len(taken()[0]), 4<<10+1)

		write(strings.Repeat(strings.Repeat("y", 100), 1000))
		require.LessOrEqual(t, cap(l.buf), 3*maxLine, "one line is held")
	})
}
