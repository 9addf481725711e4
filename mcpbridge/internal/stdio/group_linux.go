package stdio

import "syscall"

// ownerEnded is the signal that a server gets when the thread that has started it ends, and therefore when this process
// ends.
var ownerEnded = syscall.SIGKILL

// serverAttr returns the attributes of a server.
func serverAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: ownerEnded} }
