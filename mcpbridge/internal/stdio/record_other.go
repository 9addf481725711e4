//go:build !windows && (!unix || solaris || aix)

package stdio

import (
	"errors"
	"os"
)

// lock returns an error: without locks nobody knows which sessions are open.
func lock(*os.File) error { return errors.ErrUnsupported }

func checkPrivate(string) error { return errors.New("a cleanup is not supported on this system") }
