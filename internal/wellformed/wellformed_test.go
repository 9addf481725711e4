package wellformed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/wellformed"
)

func TestTextThatIsNotUnicodeIsRefused(t *testing.T) {
	for _, text := range []string{
		`""`, `"a\\ud800"`, `"\u00e9"`, `"\ud83d\ude00"`, `"\uD83D\uDE00 \\\ud83d\ude00"`, `"é😀"`, `"\\"`, `"\"\\u"`, `"\uFFFD"`,
	} {
		require.NoError(t, wellformed.JSON([]byte(text)), text)
	}
	for _, text := range []string{
		"\"a\xff\"", "\"\xed\xa0\x80\"", `"\ud800"`, `"\ud800x"`, `"\udc00"`, `"\ud800\ud800"`, `"\ude00\ud83d"`, `"\ud83d\\ude00"`, `"\\\ud800"`, `"\ud800\u0041"`, `{"\uDFFF":1}`,
	} {
		require.Error(t, wellformed.JSON([]byte(text)), text)
	}
}
