package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// browser is the program with which mcpactor opens a browser. Under this name, the client is one.
const browser = "xdg-open"

// browse is the person who logs in in the browser, and agrees to everything.
func browse() error {
	resp, err := (&http.Client{Timeout: playTimeout}).Get(os.Args[len(os.Args)-1])
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// byProgram has a person log in with the program mcpactor, and then use it.
func byProgram(url string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home) //nolint:errcheck // it is a temporary folder
	if err := os.Symlink(self, filepath.Join(home, browser)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), playTimeout)
	defer cancel()
	for _, args := range [][]string{{"login", url}, {"call", url, "test-tool"}} {
		cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(self), "mcpactor"), args...)
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "PATH="+home+":"+os.Getenv("PATH"))
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = os.Stderr, os.Stderr, time.Second
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("mcpactor %s: %w", args[0], err)
		}
	}
	return nil
}
