package mcpbridge

import (
	"fmt"
	"slices"
	"strings"
)

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
			force = "--force --ignore --time 0"
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
