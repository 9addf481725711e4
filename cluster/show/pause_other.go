//go:build !unix

package main

import (
	"errors"
	"os"
)

// canPause says whether processes can be paused.
const canPause = false

func pauseProcess(*os.Process) error { return errors.ErrUnsupported }

func resumeProcess(*os.Process) error { return errors.ErrUnsupported }
