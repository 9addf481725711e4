package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteBenchfmt writes the report in the format of Go's benchmarks, a line for each
// round: benchstat reads it, and compares two such files.
func (r *Report) WriteBenchfmt(w io.Writer) error {
	fmt.Fprintf(w, "goos: %s\ngoarch: %s\npkg: github.com/mcpactor/mcpactor/internal/bench\ncpu: %s\n", r.OS, r.Arch, r.CPU)
	for _, c := range r.Cases {
		name := strings.ToUpper(c.Name[:1]) + c.Name[1:]
		for _, one := range c.Contenders {
			for _, s := range one.Rounds {
				fmt.Fprintf(w, "Benchmark%s/how=%s-%d 1", name, one.Name, r.GOMAXPROCS)
				for _, unit := range slices.Sorted(maps.Keys(s)) {
					fmt.Fprintf(w, " %.6g %s", s[unit], unit)
				}
				if _, err := fmt.Fprintln(w); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
