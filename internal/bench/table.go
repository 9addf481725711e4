package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchunit"
)

// WriteTable writes a table for each scenario and unit.
func (r *Report) WriteTable(w io.Writer) error {
	fmt.Fprintln(w, r.machines())
	for _, scenario := range scenarios {
		cases := r.matching(scenario.name)
		var units []string
		for _, c := range cases {
			for of := range c.values {
				if !slices.Contains(units, of.unit) {
					units = append(units, of.unit)
				}
			}
		}
		slices.Sort(units)
		for _, unit := range units {
			if _, err := fmt.Fprintln(w, "\n"+table(cases, []string{unit})); err != nil {
				return err
			}
		}
	}
	return nil
}

// table returns a Markdown table with a row for each case and a column for each
// contender and unit. No unit is the one that is compared. Cells are medians, with the
// ratio to the baseline where the unit is compared.
func table(cases []*caseResult, units []string) string {
	first := cases[0]
	if len(units) == 0 {
		units = []string{first.unit}
	}
	about := fmt.Sprintf("%s; %s, %s", strings.ToUpper(first.about[:1])+first.about[1:], strings.Join(units, " and "), first.dates[units[0]])
	if slices.Contains(units, first.unit) {
		about += fmt.Sprintf(" (relative to `%s`)", first.baseline)
	}
	var columns []series
	for _, unit := range units {
		for _, c := range cases {
			for _, how := range c.contenders {
				if column := (series{how, unit}); len(c.values[column]) > 0 && !slices.Contains(columns, column) {
					columns = append(columns, column)
				}
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s:\n\n| |", about)
	for _, column := range columns {
		fmt.Fprintf(&b, " `%s`", column.how)
		if len(units) > 1 {
			fmt.Fprintf(&b, " %s", column.unit)
		}
		b.WriteString(" |")
	}
	fmt.Fprintf(&b, "\n|---|%s\n", strings.Repeat("---:|", len(columns)))
	for _, c := range cases {
		fmt.Fprintf(&b, "| %s |", strings.TrimPrefix(c.name, c.scenario.name+"/"))
		for _, column := range columns {
			cell := c.median(column.how, column.unit)
			if ratios := c.ratios(column.how, c.baseline, column.unit); column.unit == c.unit && len(ratios) > 0 {
				cell += fmt.Sprintf(" (%s)", format(median(ratios), ""))
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// median returns the median of a contender for a reader, or "-" if it was not measured.
func (c *caseResult) median(how, unit string) string {
	values := c.values[series{how, unit}]
	if len(values) == 0 {
		return "-"
	}
	return format(median(values), unit)
}

// format returns a value for a reader. A value without a unit is a ratio.
func format(value float64, unit string) string {
	value, unit = benchunit.Tidy(value, unit)
	class := benchunit.ClassOf(unit)
	switch {
	case class == benchunit.Binary:
		return strings.TrimSuffix(benchunit.Scale(value, class), ".000") + "B"
	case strings.Contains(unit, "sec"):
		return benchunit.Scale(value, class) + "s"
	case unit != "" && value == math.Trunc(value) || math.Abs(value) >= 100:
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.2f", value)
}
