package pattern

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSlashIsACharacterLikeAnyOther(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"admin*", "admin/drop", true},
		{"*", "a/b/c", true},
		{"*drop", "admin/drop", true},
		{"a?b", "a/b", true},
		{"a[^x]b", "a/b", true},
		{"a[+-0]b", "a/b", true},
		{`a\/b`, "a/b", true},
		{"*/*/c", "a/b/c", true},
		{"*a*b", "/a/ab/b", true},
		{`\**`, "*/a", true},
		{`[\]*]*`, "]/", true},
		{"[ -~]*", "/x", true},
		{`[/\]]x`, "/x", true},
		{`[^\]]x`, "/x", true},
		{"[/-z]", "a", true},
		{"é?", "é/", true},
		{"admin*", "an/admin", false},
		{"a?b", "ab", false},
		{"a/*", "a", false},
		{`\*`, "a/", false},
		{"[^+-0]x", "/x", false},
		{"[^/]x", "/x", false},
		{"[/-z]", ".", false},
		{"", "/", false},
	} {
		require.NoError(t, Check(test.pattern))
		require.Equal(t, test.want, Match(test.pattern, test.name), "%q %q", test.pattern, test.name)
	}
}

func FuzzPatterns(f *testing.F) {
	f.Add("a*[^b-d]?", "abx/é")
	f.Add(`\*[\]]**`, "*]\xff")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		want, err := path.Match(pattern, name)
		if err != nil || Check(pattern) != nil {
			return
		}
		got := Match(pattern, name)
		require.True(t, got || !want, "it is narrower than path.Match")
		if !strings.ContainsAny(name, "/"+stand) {
			require.Equal(t, want, got)
		}
	})
}
