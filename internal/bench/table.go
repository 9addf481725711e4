package bench

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d CPUs, GOMAXPROCS %d, %s, %s/%s, %d rounds\n", r.CPU, r.CPUs, r.GOMAXPROCS, r.Go, r.OS, r.Arch, r.Rounds)
	for i := range r.Cases {
		c := &r.Cases[i]
		fmt.Fprintf(w, "\n%s: %s\n", c.Name, c.About)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		columns := c.columns()
		fmt.Fprintf(t, "\t%s\tp10 to p90\tof %s\t%s\t\n", c.Unit, c.Baseline, strings.Join(columns, "\t"))
		for i := range c.Contenders {
			one := &c.Contenders[i]
			fmt.Fprintf(t, "%s\t%s\t\n", one.Name, strings.Join(one.cells(c.Unit, columns), "\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// columns returns the units other than the one that counts, in a fixed order.
func (c *CaseResult) columns() []string {
	all := map[string]bool{}
	for _, one := range c.Contenders {
		for unit := range one.Median {
			all[unit] = unit != c.Unit
		}
	}
	maps.DeleteFunc(all, func(_ string, shown bool) bool { return !shown })
	order := []string{NsPerOp, P50, P99, CPUPerOp, AllocsPerOp, BytesPerOp}
	place := func(unit string) int {
		if i := slices.Index(order, unit); i >= 0 {
			return i
		}
		return len(order)
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		if d := place(a) - place(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
}

// cells returns the row of a contender.
func (r *Result) cells(unit string, columns []string) []string {
	if r.Median == nil {
		return append([]string{r.Skipped}, make([]string, 2+len(columns))...)
	}
	ratio := "-"
	if r.Ratio > 0 {
		ratio = fmt.Sprintf("%.2f", r.Ratio)
	}
	cells := []string{Format(r.Median[unit], unit), Format(r.P10, unit) + " to " + Format(r.P90, unit), ratio}
	for _, column := range columns {
		value, ok := r.Median[column]
		if !ok {
			cells = append(cells, "-")
			continue
		}
		cells = append(cells, Format(value, column))
	}
	return cells
}

// Format returns a value of a unit for people.
func Format(value float64, unit string) string {
	switch {
	case unit == NsPerOp || unit == CPUPerOp || strings.HasSuffix(unit, "-ns"):
		return significant(time.Duration(value)).String()
	case strings.HasPrefix(unit, "B/") || strings.HasSuffix(unit, "-B"):
		switch size := math.Abs(value); {
		case size >= 10_000_000:
			return fmt.Sprintf("%.1f MB", value/1_000_000)
		case size >= 10_000:
			return fmt.Sprintf("%.1f KB", value/1000)
		}
		return fmt.Sprintf("%.0f B", value)
	case value == math.Trunc(value) || math.Abs(value) >= 100:
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.2f", value)
}

// significant rounds to three digits.
func significant(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d.Abs()/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
