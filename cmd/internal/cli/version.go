package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is the command that prints the version of the program.
type Version struct{}

// Run prints the version of the module, the commit if it is known, and the version of Go.
func (Version) Run(p *Program) error {
	info, _ := debug.ReadBuildInfo()
	fmt.Fprintln(p.Out, p.Name, versionText(info))
	return nil
}

// versionText describes a build. info is nil for a program that was built without modules.
func versionText(info *debug.BuildInfo) string {
	version, commit := "(unknown)", ""
	if info != nil && info.Main.Version != "" {
		version = info.Main.Version
	}
	if info != nil {
		for _, setting := range info.Settings {
			switch {
			case setting.Key == "vcs.revision":
				commit = setting.Value + commit
			case setting.Key == "vcs.modified" && setting.Value == "true":
				commit += " with changes"
			}
		}
	}
	if commit != "" {
		commit = "commit " + commit + ", "
	}
	return fmt.Sprintf("%s (%s%s, %s/%s)", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
