package cli

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionIsThatOfTheModule(t *testing.T) {
	build := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
	settings := []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}}
	changed := []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, {Key: "vcs.revision", Value: "abc"}}
	for want, info := range map[string]*debug.BuildInfo{
		"v1.2.3 (":                           {Main: debug.Module{Version: "v1.2.3"}},
		"(devel) (commit abc, ":              {Main: debug.Module{Version: "(devel)"}, Settings: settings},
		"(devel) (commit abc with changes, ": {Main: debug.Module{Version: "(devel)"}, Settings: changed},
		"(unknown) (":                        nil,
	} {
		require.Equal(t, want+build, versionText(info))
	}
	var out bytes.Buffer
	program := &Program{Name: "test", Out: &out}
	require.Equal(t, ExitOK, program.Run(&struct {
		Version Version `cmd:""`
	}{}, []string{"version"}))
	require.Regexp(t, `^test .* \(.*go.*\)\n$`, out.String())
}
