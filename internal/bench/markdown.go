package bench

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// section is a part of a document that is written by us: between a comment that
// names it, and one that ends it.
var section = regexp.MustCompile(`(?s)(<!-- bench: ([^\n]+?) -->\n).*?(<!-- bench end -->)`)

// Document writes the sections of a Markdown file anew. They are named in comments:
//
//	<!-- bench: machine -->       where it was measured
//	<!-- bench: targets -->       the targets, and what was measured
//	<!-- bench: figures -->       what it costs in three figures
//	<!-- bench: ours -->          what the SDK costs, and what we add
//	<!-- bench: warm -->          the tables of a scenario, by the unit that counts
//	<!-- bench: warm allocs/op --> the same by another unit
//	<!-- bench end -->
func (r *Report) Document(file string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	var unknown []string
	fresh := section.ReplaceAllStringFunc(string(old), func(found string) string {
		parts := section.FindStringSubmatch(found)
		text := r.section(parts[2])
		if text == "" {
			unknown = append(unknown, parts[2])
			return found
		}
		return parts[1] + text + parts[3]
	})
	if len(unknown) > 0 {
		return fmt.Errorf("bench: %s: nothing was measured for %q: measure all scenarios", file, unknown)
	}
	if err := os.WriteFile(file, []byte(fresh), 0o644); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// section returns the text of one, or nothing.
func (r *Report) section(name string) string {
	var b strings.Builder
	switch name {
	case "machine":
		r.machine(&b)
	case "targets":
		r.targets(&b)
	case "figures":
		r.figures(&b)
	case "ours":
		r.ours(&b)
	default:
		scenario, unit, _ := strings.Cut(name, " ")
		all := r.pivots(scenario)
		for _, p := range all {
			if unit == "" || p.has(unit) {
				p.markdown(&b, unit)
			}
		}
		if b.Len() == 0 && len(all) > 0 { // the system does not say
			fmt.Fprintln(&b, errNotThere)
		}
	}
	return b.String()
}

func (r *Report) machine(b *strings.Builder) {
	fmt.Fprintf(b, "%s, %d CPUs, GOMAXPROCS %d, %s %s/%s, %s; %d rounds.", r.CPU, r.CPUs, r.GOMAXPROCS, r.Go, r.OS, r.Arch, r.Date.Format("2006-01-02"), r.Rounds)
	if r.Quick {
		b.WriteString(" **Measured with --quick: these are no figures to quote.**")
	}
	b.WriteString("\n")
}

func (r *Report) targets(b *strings.Builder) {
	b.WriteString("| what | target | measured | half of the rounds | | bare | worst of |\n|---|---|---|---|---|---|---|\n")
	for _, c := range r.Checks() {
		limit, bare := "none", ""
		switch {
		case c.Limit > 0 && c.AtLeast:
			limit = "≥ " + Format(c.Limit, c.Unit)
		case c.Limit > 0:
			limit = "≤ " + Format(c.Limit, c.Unit)
		}
		if c.Bare > 0 {
			bare = Format(c.Bare, c.Unit)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s to %s | %s | %s | `%s` |\n", c.What, limit,
			Format(c.Value, c.Unit), Format(c.Low, c.Unit), Format(c.High, c.Unit), c.Verdict(), bare, c.Where)
	}
}

// headlines are what a reader wants to know first.
var headlines = []struct{ what, where, how, by string }{
	{"a call over HTTP with 64 callers, by one on a bare session of the SDK", "warm/transport=http-json/callers=64", nameClient, nameBare},
	{"the same by a session for each call, by the call on ours", "warm/transport=http-json/callers=64", namePerCall, nameClient},
	{"an expired session replaced and the call repeated, by opening a bare session and calling", "recovery/transport=http-json", nameClient, nameBare},
}

// figures writes those, as ratios of time.
func (r *Report) figures(b *strings.Builder) {
	b.WriteString("| time of | | measured by `go run ./cmd/demo bench` |\n|---|---:|---|\n")
	for _, h := range headlines {
		for i := range r.Cases {
			if c := &r.Cases[i]; c.Name == h.where {
				if all := c.ratios(h.how, h.by, c.timeUnit()); len(all) > 0 {
					fmt.Fprintf(b, "| %s | %.2f | `--scenario %s` |\n", h.what, median(all), h.where)
				}
			}
		}
	}
}

// costs are what a call is said to cost, by unit.
var costs = []struct{ unit, what string }{
	{P50, "latency, median"}, {CPUPerOp, "CPU time"}, {AllocsPerOp, "allocations"}, {BytesPerOp, "garbage"},
}

// ours writes what a warm call of one caller costs with the bare SDK, and what
// supervision adds.
func (r *Report) ours(b *strings.Builder) {
	b.WriteString("| | | the SDK | `message` adds | `client` adds |\n|---|---|---:|---:|---:|\n")
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.Scenario != "warm" || c.label() != "callers=1" {
			continue
		}
		transport := c.Params[0].Value
		for _, cost := range costs {
			bare := c.Contender(nameBare)
			if bare == nil || bare.Median[cost.unit] == 0 { // the system does not say
				continue
			}
			fmt.Fprintf(b, "| %s | %s | %s |", transport, cost.what, Format(bare.Median[cost.unit], cost.unit))
			for _, name := range ours {
				b.WriteString(" " + c.added(name, cost.unit) + " |")
			}
			b.WriteString("\n")
			transport = "" // once is enough
		}
	}
}

// added returns what a contender adds to a bare session, and the share.
func (c *CaseResult) added(name, unit string) string {
	all := addedTo(nameBare, unit)(c, name)
	if len(all) == 0 {
		return ""
	}
	more := median(all)
	return fmt.Sprintf("%s (%+.0f %%)", Format(more, unit), 100*more/c.Contender(nameBare).Median[unit])
}

// markdown writes the table. Cells are medians, with the ratio to the baseline where
// the unit is the one that counts.
func (p *pivot) markdown(b *strings.Builder, unit string) {
	first := p.columns[0]
	shown := unit
	if shown == "" {
		shown = first.Unit
	}
	fmt.Fprintf(b, "\n%s: %s, in %s", p.title, first.About, shown)
	if unit == "" {
		fmt.Fprintf(b, " (by `%s`)", first.Baseline)
	}
	b.WriteString("\n\n| |")
	for _, c := range p.columns {
		fmt.Fprintf(b, " %s |", c.label())
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(p.columns)) + "\n")
	for _, row := range p.rows {
		fmt.Fprintf(b, "| `%s` |", row)
		for _, c := range p.columns {
			fmt.Fprintf(b, " %s |", c.cell(row, unit))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

// has reports whether anything was measured by a unit.
func (p *pivot) has(unit string) bool {
	return slices.ContainsFunc(p.columns, func(c *CaseResult) bool {
		return slices.ContainsFunc(c.Contenders, func(one Result) bool {
			_, ok := one.Median[unit]
			return ok
		})
	})
}

// cell returns what a contender came to in one case.
func (c *CaseResult) cell(name, unit string) string {
	one := c.Contender(name)
	switch {
	case one == nil:
		return ""
	case one.Median == nil:
		return one.Skipped
	case unit == "":
		text := Format(one.Median[c.Unit], c.Unit)
		if one.Ratio > 0 {
			text += fmt.Sprintf(" (%.2f)", one.Ratio)
		}
		return text
	}
	if value, ok := one.Median[unit]; ok {
		return Format(value, unit)
	}
	return "-"
}
