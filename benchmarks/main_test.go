package benchmarks

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The first arguments that make the test binary a server.
const (
	serveHTTP  = "serve-http"
	serveStdio = "serve-stdio" // followed by the content of results, and the name of a file
	// serveOldStdio is the same without protocol 2026-07-28.
	serveOldStdio = "serve-old-stdio"
)

// serverStdin ends the HTTP server when it is closed, which happens with this process.
var serverStdin io.WriteCloser

// self is the test binary, and origin that of its HTTP server.
var self, origin string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serveHTTP {
		exitOn(runHTTP(os.Stdin, os.Stdout))
	}
	if len(os.Args) > 3 && (os.Args[1] == serveStdio || os.Args[1] == serveOldStdio) {
		exitOn(runStdio(os.Args[1] == serveOldStdio, os.Args[2], os.Args[3]))
	}
	if pass := proxies[os.Args[min(1, len(os.Args)-1)]]; pass != nil {
		exitOn(runProxy(pass, os.Args[2:]))
	}
	if err := startHTTP(); err != nil {
		exitOn(err)
	}
	os.Exit(m.Run())
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// startHTTP starts the HTTP server, which ends with this process.
func startHTTP() (err error) {
	if self, err = os.Executable(); err != nil {
		return err
	}
	cmd := exec.Command(self, serveHTTP)
	cmd.Stderr = os.Stderr
	if serverStdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	origin = strings.TrimSpace(line)
	return err
}
