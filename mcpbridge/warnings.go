package mcpbridge

import (
	"fmt"
	"slices"
	"strings"
)

// plainFlags are the options of docker run and podman run that take no value. An option that is missing here hides the option
// after it from [Server.Warnings].
var plainFlags = strings.Fields(`d detach env-host disable-content-trust help http-proxy i init interactive no-healthcheck no-hosts
	no-hostname oom-kill-disable P passwd privileged publish-all q quiet read-only read-only-tmpfs replace rm rmi rootfs sig-proxy t
	tls-verify tty unsetenv-all use-api-socket`)

// Warnings returns what will probably go wrong with a configuration that is valid, each as a sentence without a full stop that
// names the field. So far it looks at servers that run in a container of docker, podman or nerdctl, whose processes are not
// those of Command, and do not end with them. It also finds "docker run" in Args, as in "sudo docker run", but not in the text of a
// script.
func (s *Server) Warnings() (warnings []string) {
	line := append([]string{s.Command}, s.Args...)
	at := slices.IndexFunc(line, func(word string) bool { return slices.Contains(engines, programOf(word)) })
	if at < 0 {
		return nil
	}
	program := programOf(line[at])
	options, ok := afterRun(line[at+1:])
	if !ok {
		return nil
	}
	given := flagsOf(options)
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
		warn("args: %s run has no --init, without which a server ignores all signals that it does not handle: add it", program)
	}
	if s.Cleanup.Command == "" {
		force := "--force"
		if program == "podman" {
			force = "--force --ignore --time 0"
		}
		warn("cleanup: is missing, so that a container outlives its session when the server does not end by itself, and this process when it is killed: "+
			"add --name %s to args, and the cleanup %s rm %s %s", SessionMark, program, force, SessionMark)
	} else if !given["name"] {
		warn("args: %s run has no --name %s, by which the cleanup finds the container: add it", program, SessionMark)
	}
	return warnings
}

// engines are the programs that run containers.
var engines = []string{"docker", "podman", "nerdctl"}

// programOf returns the name of a program, given its path.
func programOf(path string) string {
	return strings.TrimSuffix(path[strings.LastIndexAny(path, `/\`)+1:], ".exe")
}

// afterRun returns the arguments after the subcommand run, or container run. It returns false for other subcommands,
// such as mcp gateway run.
func afterRun(args []string) (after []string, ok bool) {
	for i, arg := range args {
		isValue := i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=")
		switch {
		case arg == "run":
			return args[i+1:], true
		case !strings.HasPrefix(arg, "-") && !isValue && arg != "container":
			return nil, false
		}
	}
	return nil, false
}

// flagsOf returns the options before the image.
func flagsOf(args []string) map[string]bool {
	given := map[string]bool{}
	for i := 0; i < len(args) && strings.HasPrefix(args[i], "-"); i++ {
		long := strings.HasPrefix(args[i], "--")
		name, value, valued := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
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
			given[name] = value != "false"
		}
		if last := names[max(0, len(names)-1):]; !valued && len(last) > 0 && !slices.Contains(plainFlags, last[0]) {
			i++ // its value
		}
	}
	return given
}
