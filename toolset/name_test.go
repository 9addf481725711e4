package toolset

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

var valid = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func TestSafeNames(t *testing.T) {
	long := strings.Repeat("x", 60)
	for _, test := range []struct{ server, tool, want string }{
		{"files", "read", "files__read"},
		{"files", "read-all_now", "files__read-all_now"},
		{"a", "b__c", "a__b__c"},
		{"a", "_b", "a___b"},
		{"files", strings.Repeat("x", 57), "files__" + strings.Repeat("x", 57)},
		{"my.files", "read", "my_files__read_fb00590d"},
		{"my_files", "read", "my_files__read"},
		{"files", "read file!", "files__read_file__3944ca5c"},
		{"files", "lire€", "files__lire__8a1780fb"},
		{"files", "", "files__"},
		{"files", long, "files__" + strings.Repeat("x", 48) + "_2167b3b8"},
		{"a__b", "c", "a__b__c_bf3c0c39"},
		{"a_", "b", "a___b_dcd870fd"},
		{"files", "read_0123abcd", "files__read_0123abcd_4a262648"},
	} {
		name := SafeName(test.server, test.tool)
		require.Equal(t, test.want, name, "%q %q", test.server, test.tool)
		require.Regexp(t, valid, name)
	}
}

func newSet(tools []*Tool, missing []*messages.Failure) *Set {
	c := newCatalog(tools)
	return &Set{Tools: c.tools, Missing: missing, catalog: c}
}

// named returns tools for pairs of server and tool, with the names of a Set.
func named(pairs [][2]string) map[[2]string]string {
	var tools []*Tool
	for _, pair := range pairs {
		tools = append(tools, &Tool{Name: SafeName(pair[0], pair[1]), Server: pair[0], Original: pair[1]})
	}
	names := map[[2]string]string{}
	for _, tool := range newSet(tools, nil).Tools {
		names[[2]string{tool.Server, tool.Original}] = tool.Name
	}
	return names
}

func TestToolsWhoseHashesAreTheSameGetLongerOnes(t *testing.T) {
	// Long names with the same beginning differ only in their hashes, which are short
	// enough to find a collision.
	seen := map[string]string{}
	for i := 0; ; i++ {
		tool := strings.Repeat("x", 60) + fmt.Sprint(i)
		name := SafeName("s", tool)
		other, ok := seen[name]
		seen[name] = tool
		if !ok {
			continue
		}
		names := named([][2]string{{"s", tool}, {"s", other}, {"s", "x"}})
		require.Len(t, names, 3)
		require.Equal(t, "s__x", names[[2]string{"s", "x"}])
		require.Regexp(t, `^s__x+_[0-9a-f]{32}$`, names[[2]string{"s", tool}])
		require.NotEqual(t, names[[2]string{"s", tool}], names[[2]string{"s", other}])
		require.Equal(t, names, named([][2]string{{"s", other}, {"s", "x"}, {"s", tool}}))
		return
	}
}

func FuzzSafeName(f *testing.F) {
	f.Add("a__b|c\na|b__c\na_|b\na|_b\na|b_0123abcd")
	f.Add("my files|read\nmy.files|read\nmy_files|read\n|")
	f.Add("s|" + strings.Repeat("x", 99) + "\ns|" + strings.Repeat("x", 98) + "\n\xff|\xfe")
	f.Fuzz(func(t *testing.T, text string) {
		var pairs [][2]string
		for line := range strings.Lines(text) {
			server, tool, _ := strings.Cut(line, "|")
			if pair := [2]string{server, tool}; !slices.Contains(pairs, pair) {
				pairs = append(pairs, pair)
			}
		}
		names := named(pairs)
		owners := map[string][2]string{}
		for pair, name := range names {
			require.Regexp(t, valid, name)
			require.NotContains(t, owners, name, "%q and %q", owners[name], pair)
			owners[name] = pair
			require.Equal(t, SafeName(pair[0], pair[1]), name, "it depends on others")
		}
		slices.Reverse(pairs)
		require.Equal(t, names, named(pairs))
	})
}
