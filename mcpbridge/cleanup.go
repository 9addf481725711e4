package mcpbridge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/internal/limits"
)

// SessionMark stands for the name of the session in the arguments of a [Server] with a [Cleanup], and in those of the Cleanup.
// The name is different for each start of Command, and consists of small letters, digits and dashes.
const SessionMark = "{session}"

// Cleanup is a command that ends what a session of a [Server] has started and does not end with its processes, such as a
// container, which the processes of a daemon run.
//
//	Args:    []string{"run", "--rm", "-i", "--init", "--name", "{session}", "example/notes-mcp"},
//	Cleanup: mcpbridge.Cleanup{Command: "docker", Args: []string{"rm", "--force", "{session}"}},
//
// The command runs when all processes of the session have ended, also if the session could not be opened. Closing the session
// waits for it: the processes have half of CloseTimeout to end, and the command has the rest and one second more. If this
// process is killed, the command runs at the next start: when a supervisor starts that has a server with the same Command, Args
// and Records here, in any process of the same user on this machine. The other fields of the server may differ.
//
// The command must succeed, with the exit status 0, if there is nothing to end. It is tried up to five times within a second.
// If it fails, closing the session fails, and can be tried again; the next start tries it, too.
//
// It gets the environment of the server, and its working directory if that still exists. At the next start these are the ones
// of the server itself, and not those of [Server.PerKey].
type Cleanup struct {
	// Command is the program, looked up in PATH. Empty means that there is no cleanup.
	Command string
	// Args are the arguments of Command. One of them contains [SessionMark].
	Args []string
	// Timeout is how long Command may run, all tries together. It is killed then, and has failed. Defaults to 10 seconds; -1 is no limit.
	Timeout time.Duration
	// Records is a directory for the names of the sessions that are open, which only the user of this process may access. It
	// is made if it does not exist. Defaults to a directory below [os.UserCacheDir].
	Records string
}

// validate returns an error for a cleanup of a server with these arguments.
func (c *Cleanup) validate(command string, args []string) error {
	marked := func(args []string) bool {
		return slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, SessionMark) })
	}
	switch {
	case c.Command == "" && len(c.Args) == 0 && c.Timeout == 0 && c.Records == "":
		return nil
	case c.Command == "":
		return errors.New("cleanup.command: is empty")
	case command == "":
		return errors.New("cleanup: is for servers with a command")
	case !marked(c.Args):
		return fmt.Errorf("cleanup.args: none has %s, so that the command would not know what to end", SessionMark)
	case !marked(args):
		return fmt.Errorf("args: none has %s, by which the cleanup finds what to end", SessionMark)
	}
	if err := limits.Check("cleanup.timeout", c.Timeout); err != nil {
		return err
	}
	if err := checkProcess(c.Command, c.Records, c.Args, nil); err != nil {
		return fmt.Errorf("cleanup.%w", err)
	}
	return nil
}
