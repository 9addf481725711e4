package mcpbridge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
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
// The command runs when all processes of the session have ended, also if the session could not be opened. Closing
// the session waits for it. If this process is killed, the command runs when a supervisor with the same Cleanup and the same
// Dir of the server starts next, in any process of the same user on this machine.
//
// The command must succeed, with the exit status 0, if there is nothing to end. If it fails, closing the session fails,
// and can be tried again; if it has not succeeded in the end, it is tried again at the next start. It gets the
// environment and the working directory of the server.
type Cleanup struct {
	// Command is the program, looked up in PATH. Empty means that there is no cleanup.
	Command string
	// Args are the arguments of Command. One of them contains [SessionMark].
	Args []string
	// Timeout is how long Command may run. It is killed then, and has failed. Defaults to 10 seconds.
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
	case c.Timeout < 0:
		return fmt.Errorf("cleanup.timeout: %v is negative", c.Timeout)
	case c.Timeout > maxTimeout:
		return fmt.Errorf("cleanup.timeout: %v is more than %v", c.Timeout, maxTimeout)
	case !marked(c.Args):
		return fmt.Errorf("cleanup.args: none has %s, so that the command would not know what to end", SessionMark)
	case !marked(args):
		return fmt.Errorf("args: none has %s, by which the cleanup finds what to end", SessionMark)
	}
	if err := checkProcess(c.Command, c.Records, c.Args, nil); err != nil {
		return fmt.Errorf("cleanup.%w", err)
	}
	return nil
}

// plainFlags are the options of docker run and podman run that take no value. An option that is missing here hides the option
// after it from [Server.Warnings].
var plainFlags = strings.Fields(`d detach env-host disable-content-trust help http-proxy i init interactive no-healthcheck no-hosts
	oom-kill-disable P passwd privileged publish-all q quiet read-only read-only-tmpfs replace rm rmi sig-proxy t tls-verify tty`)

// Warnings returns what will probably go wrong with a configuration that is valid, each as a sentence without a full stop that
// names the field. So far it looks at servers that run in a container of docker, podman or nerdctl, whose processes are not
// those of Command, and do not end with them.
func (s *Server) Warnings() (warnings []string) {
	program := strings.TrimSuffix(s.Command[strings.LastIndexAny(s.Command, `/\`)+1:], ".exe")
	if !slices.Contains([]string{"docker", "podman", "nerdctl"}, program) {
		return nil
	}
	run := slices.Index(s.Args, "run")
	if run < 0 {
		return nil
	}
	given := flagsOf(s.Args[run+1:])
	warn := func(text string, values ...any) { warnings = append(warnings, fmt.Sprintf(text, values...)) }
	if !given["i"] && !given["interactive"] {
		warn("args: %s run has no -i, so that the server has no input: add it", program)
	}
	if given["t"] || given["tty"] {
		warn("args: %s run has -t, which mixes stderr and line ends of a terminal into the messages: remove it", program)
	}
	if given["d"] || given["detach"] {
		warn("args: %s run has -d, so that the server is not connected: remove it", program)
	}
	if given["restart"] {
		warn("args: %s run has --restart, so that the container starts again after its session: remove it", program)
	}
	if !given["rm"] {
		warn("args: %s run has no --rm, so that each session leaves a stopped container: add it", program)
	}
	if !given["init"] {
		warn("args: %s run has no --init, so that a server that handles no signals ignores them as the first process of its container: add it", program)
	}
	if s.Cleanup.Command == "" {
		force := "--force"
		if program == "podman" {
			force = "--force --ignore"
		}
		warn("cleanup: is missing, so that a container outlives its session when the server does not end by itself, and this process when it is killed: "+
			"add --name %s to args, and the cleanup %s rm %s %s", SessionMark, program, force, SessionMark)
	} else if !given["name"] {
		warn("args: %s run has no --name %s, by which the cleanup finds the container: add it", program, SessionMark)
	}
	return warnings
}

// flagsOf returns the options before the image.
func flagsOf(args []string) map[string]bool {
	given := map[string]bool{}
	for i := 0; i < len(args) && strings.HasPrefix(args[i], "-"); i++ {
		long := strings.HasPrefix(args[i], "--")
		name, _, valued := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		names := []string{name}
		if !long { // such as -it, or -v/srv:/srv
			names = nil
			for _, letter := range name {
				names = append(names, string(letter))
				if !slices.Contains(plainFlags, string(letter)) {
					valued = valued || len(names) < len(name)
					break
				}
			}
		}
		for _, name := range names {
			given[name] = true
		}
		if last := names[max(0, len(names)-1):]; !valued && len(last) > 0 && !slices.Contains(plainFlags, last[0]) {
			i++ // its value
		}
	}
	return given
}
