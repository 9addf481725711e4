package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// target is a platform, in the words of Go, with its program.
type target struct {
	OS, Arch string
	program  file
}

func (t *target) String() string { return t.OS + "_" + t.Arch }

// nodeNames are what Node calls otherwise than Go.
var nodeNames = strings.NewReplacer("amd64", "x64", "windows", "win32")

// NodeOS is the name of the system in Node.
func (t *target) NodeOS() string { return nodeNames.Replace(t.OS) }

// NodeCPU is the name of the processor in Node.
func (t *target) NodeCPU() string { return nodeNames.Replace(t.Arch) }

// build builds the program for each platform. It reads the version and the time of the commit from the first, and has that for this
// machine write the completion scripts.
func (r *release) build(platforms []string) error {
	own := ""
	for _, platform := range platforms {
		t := &target{program: file{name: "mcpactor", mode: 0o755}}
		t.OS, t.Arch, _ = strings.Cut(platform, "/")
		if t.OS == "windows" {
			t.program.name += ".exe"
		}
		path := filepath.Join(r.work, t.String())
		if t.OS == runtime.GOOS && t.Arch == runtime.GOARCH {
			own = path
		}
		cmd := exec.Command("go", "build", "-buildvcs=true", "-trimpath", "-ldflags=-s -w", "-o", path, "./cmd/mcpactor")
		cmd.Dir, cmd.Stderr = "..", os.Stderr
		cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0", "GOOS="+t.OS, "GOARCH="+t.Arch, "GOAMD64=v1", "GOARM64=v8.0")
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("building for %s: %w", platform, err)
		}
		var err error
		if t.program.data, err = os.ReadFile(path); err != nil {
			return err
		}
		r.targets = append(r.targets, t)
	}
	if own == "" {
		return fmt.Errorf("-platforms lacks %s/%s, which writes the completion scripts: add it", runtime.GOOS, runtime.GOARCH)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := exec.Command(own, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("completion for %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(r.work, shell), script, 0o644); err != nil {
			return err
		}
	}
	return r.identify(own)
}

// identify reads the version and the time of the commit from a program.
func (r *release) identify(program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.time" {
			r.time, err = time.Parse(time.RFC3339, setting.Value)
		}
	}
	r.version = strings.TrimPrefix(info.Main.Version, "v")
	if err != nil || r.time.IsZero() || strings.HasSuffix(r.version, "+dirty") {
		return errors.New("go build has found no commit, or changes: run make dist, which builds in a clone")
	}
	return nil
}
