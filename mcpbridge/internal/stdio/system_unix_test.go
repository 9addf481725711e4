//go:build unix

package stdio

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

const killedText = "was killed by signal: killed"

func init() {
	testServers["runaway"] = func() { // its child keeps the pipes open outside the process group
		startChild(&syscall.SysProcAttr{Setsid: true})
	}
}

// programFor returns the program that an act of the test runs.
func programFor(*testing.T) string { return os.Args[0] }

// forking is a server that starts children at once. They can be told from those of others by their arguments.
func forking() *mcpbridge.Server {
	sleep := fmt.Sprintf("sleep 60%d", os.Getpid())
	return &mcpbridge.Server{Command: "sh", Args: []string{"-c", sleep + " & " + sleep + " & " + sleep}}
}

// passFile gives a file to a child, which gets it from passedFile.
func passFile(cmd *exec.Cmd, f *os.File) { cmd.ExtraFiles = []*os.File{f} }

func passedFile() *os.File { return os.NewFile(3, "said") }
