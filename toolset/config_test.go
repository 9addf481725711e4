package toolset

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWrongConfigurationsNameTheField(t *testing.T) {
	for name, test := range map[string]struct {
		cfg  Config
		want string
	}{
		"scope":             {Config{Scope: "a\nb"}, "toolset: scope: has a control character"},
		"listTimeout":       {Config{ListTimeout: -2}, "toolset: listTimeout: -2ns is negative: -1ns is no limit"},
		"stability":         {Config{Stability: "firm"}, `toolset: stability: "firm" is none of ["append" "freeze" "follow"]`},
		"name":              {Config{Servers: []Filter{{}}}, `toolset: servers[0] "": name: is empty: use that of a server of the supervisor`},
		"allow":             {Config{Servers: []Filter{{Name: "a"}, {Name: "files", Allow: []string{"[", "b"}}}}, `toolset: servers[1] "files": allow[0]: "[" is not a pattern: syntax error in pattern`},
		"NUL":               {Config{Servers: []Filter{{Name: "a", Deny: []string{"[\x00-z]"}}}}, `toolset: servers[0] "a": deny[0]: "[\x00-z]" is not a pattern: it has a NUL character`},
		"deny":              {Config{Servers: []Filter{{Name: "a", Deny: []string{"b", "x[a-"}}}}, `toolset: servers[0] "a": deny[1]: "x[a-" is not a pattern: syntax error in pattern`},
		"empty":             {Config{Servers: []Filter{{Name: "a", Deny: []string{""}}}}, `toolset: servers[0] "a": deny[0]: is empty`},
		"disabled":          {Config{Servers: []Filter{{Name: "a", Disabled: true, Allow: []string{"["}}}}, `toolset: servers[0] "a": allow[0]: "[" is not a pattern: syntax error in pattern`},
		"scope of a server": {Config{Servers: []Filter{{Name: "a"}, {Name: "b", Scope: "a\nb"}}}, `toolset: servers[1] "b": scope: has a control character`},
		"pattern twice":     {Config{Servers: []Filter{{Name: "*"}, {Name: "*"}}}, `toolset: servers[1] "*": name: is already that of servers[0]`},
		"twice":             {Config{Servers: []Filter{{Name: "a"}, {Name: "a"}}}, `toolset: servers[1] "a": name: is already that of servers[0]`},
		"several":           {Config{ListTimeout: -2, Servers: []Filter{{}}}, "toolset: listTimeout: -2ns is negative: -1ns is no limit\n" + `toolset: servers[0] "": name: is empty: use that of a server of the supervisor`},
	} {
		t.Run(name, func(t *testing.T) {
			require.EqualError(t, test.cfg.withDefaults().validate(), test.want)
		})
	}
	require.NoError(t, Config{}.withDefaults().validate())
	require.Equal(t, 10*time.Second, Config{}.withDefaults().ListTimeout)
	require.Equal(t, Append, Config{}.withDefaults().Stability)
}

func TestEntryOfAServerIsTheExactOneOrTheFirstPattern(t *testing.T) {
	cfg := Config{Servers: []Filter{{Name: "mail-*"}, {Name: "*"}, {Name: "mail-b"}, {Name: "m*"}, {Name: "a["}, {Name: "x[y]"}}}
	for server, want := range map[string]string{
		"mail-a": "mail-*", "mail-b": "mail-b", "m": "*", "files/a": "*", "a[": "a[", "x[y]": "x[y]", "xy": "*", "*": "*",
	} {
		require.Equal(t, want, cfg.entryOf(server).Name, server)
	}
	require.Nil(t, Config{Servers: []Filter{{Name: "a["}, {Name: "b"}}}.entryOf("a"))
	names := []string{"mail-a", "mail-b", "xy"}
	for i, want := range [][]string{{"mail-a"}, {"xy"}, {"mail-b"}, nil, {"a["}, nil} {
		require.Equal(t, want, cfg.serversOf(&cfg.Servers[i], names), cfg.Servers[i].Name)
	}
}

func TestFilters(t *testing.T) {
	const all = "read_file read_dir write_file a/b"
	for name, test := range map[string]struct {
		allow, deny []string
		want        string
	}{
		"none":              {nil, nil, all},
		"exact":             {[]string{"read_dir", "other"}, nil, "read_dir"},
		"pattern":           {[]string{"read_*"}, nil, "read_file read_dir"},
		"deny":              {nil, []string{"write_file"}, "read_file read_dir a/b"},
		"deny wins":         {[]string{"*_file"}, []string{"write_*"}, "read_file"},
		"deny all":          {[]string{"read_file"}, []string{"*"}, ""},
		"deny star":         {nil, []string{"*"}, ""},
		"deny behind slash": {nil, []string{"a*"}, "read_file read_dir write_file"},
		"pattern and slash": {[]string{"a/*"}, nil, "a/b"},
		"set":               {[]string{"read_[df]i*"}, nil, "read_file read_dir"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := Filter{Name: "s", Allow: test.allow, Deny: test.deny}
			require.NoError(t, srv.validate())
			var got []string
			for _, tool := range strings.Fields(all) {
				if srv.Wants(tool, false) {
					got = append(got, tool)
				}
			}
			require.Equal(t, test.want, strings.Join(got, " "))
		})
	}
}
