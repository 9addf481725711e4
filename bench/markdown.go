package bench

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// section is a part of a document that is written by us: between a comment that
// names it, and one that ends it.
var section = regexp.MustCompile(`(?s)(<!-- bench: ([^\n]+?) -->\n).*?(<!-- bench end -->)`)

// Document writes the sections of a Markdown file anew. They are named in comments:
//
//	<!-- bench: machine -->       where it was measured
//	<!-- bench: targets -->       the targets, and what was measured
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
	case "ours":
		r.ours(&b)
	default:
		scenario, unit, _ := strings.Cut(name, " ")
		for _, p := range r.pivots(scenario) {
			p.markdown(&b, unit)
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
		sign, bare := "≤", ""
		if c.AtLeast {
			sign = "≥"
		}
		if c.Bare > 0 {
			bare = Format(c.Bare, c.Unit)
		}
		fmt.Fprintf(b, "| %s | %s %s | %s | %s to %s | %s | %s | `%s` |\n", c.What, sign, Format(c.Limit, c.Unit),
			Format(c.Value, c.Unit), Format(c.Low, c.Unit), Format(c.High, c.Unit), c.Verdict(), bare, c.Where)
	}
}

// ours writes what a warm call of one caller costs with the bare SDK, and what
// supervision adds.
func (r *Report) ours(b *strings.Builder) {
	b.WriteString("| | of | SDK | `message` adds | `client` adds |\n|---|---|---:|---:|---:|\n")
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.Scenario != "warm" || c.label() != "callers=1" {
			continue
		}
		for _, unit := range []string{P50, CPUPerOp, AllocsPerOp, BytesPerOp} {
			bare := c.Contender(nameBare)
			if bare == nil || bare.Median == nil {
				continue
			}
			fmt.Fprintf(b, "| %s | %s | %s |", c.Params[0].Value, unit, Format(bare.Median[unit], unit))
			for _, name := range ours {
				text := ""
				if added := addedTo(nameBare, unit)(c, name); len(added) > 0 {
					text = Format(median(added), unit)
				}
				fmt.Fprintf(b, " %s |", text)
			}
			b.WriteString("\n")
		}
	}
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
