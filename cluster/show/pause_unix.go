//go:build unix

package main

import (
	"os"
	"syscall"
)

// canPause says whether processes can be paused.
const canPause = true

// pauseProcess stops a process until resumeProcess.
func pauseProcess(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// resumeProcess lets a process that is paused run again.
func resumeProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
