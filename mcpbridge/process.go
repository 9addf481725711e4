package mcpbridge

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpactor/mcpactor/internal/visible"
)

// checkProcess returns an error for a command with which no process can be started, and for the name of a variable that
// would set another variable. The error contains no value.
func checkProcess(command, dir string, args []string, env map[string]string) error {
	const nul = "\x00"
	for _, name := range slices.Sorted(maps.Keys(env)) {
		switch {
		case name == "" || strings.ContainsAny(name, "="+nul):
			name, _, hasValue := strings.Cut(name, "=")
			if name = visible.Detail(name); hasValue { // what follows may be a secret
				name += "=…"
			}
			return fmt.Errorf("env.%s: is no name of a variable", name)
		case strings.Contains(env[name], nul):
			return fmt.Errorf("env.%s: the value has a NUL character", visible.Detail(name))
		}
	}
	for i, arg := range args {
		if strings.Contains(arg, nul) {
			return fmt.Errorf("args[%d]: has a NUL character", i)
		}
	}
	switch {
	case strings.Contains(command, nul):
		return errors.New("command: has a NUL character")
	case strings.Contains(dir, nul):
		return errors.New("dir: has a NUL character")
	}
	return nil
}
