package inputs

import "github.com/mcpactor/mcpactor/config"

// Value returns the value of an input.
func (l *Loader) Value(in config.Input) (string, bool) { return l.value(in) }
