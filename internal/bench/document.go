package bench

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// section is a part of a document that is generated: between a comment that names it
// and a comment that ends it.
var section = regexp.MustCompile(`(?s)(<!-- bench: ([^\n]+?) -->\n).*?(<!-- bench end -->)`)

// Document generates the sections of a Markdown file. Comments name them:
//
//	<!-- bench: machine -->        where and when it was measured
//	<!-- bench: figures -->        the most important ratios
//	<!-- bench: added -->          what a warm call costs with the SDK, and what is added
//	<!-- bench: targets -->        the targets and what was measured
//	<!-- bench: warm/*/callers=1 --> the cases that match a pattern, by the unit that is compared
//	<!-- bench: warm B/op -->      the same by other units
//	<!-- bench end -->
func (r *Report) Document(file string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	var unknown []string
	text := section.ReplaceAllStringFunc(string(old), func(found string) string {
		parts := section.FindStringSubmatch(found)
		text := r.section(parts[2])
		if text == "" {
			unknown = append(unknown, parts[2])
		}
		return parts[1] + text + parts[3]
	})
	if len(unknown) > 0 {
		return fmt.Errorf("bench: %s: there is nothing to measure for %q", file, unknown)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// section returns the text of a section, or nothing if there is no such section.
func (r *Report) section(name string) string {
	switch name {
	case "machine":
		return r.machines() + "\n"
	case "figures":
		return r.figures()
	case "added":
		return r.addedTable()
	case "targets":
		return r.targetTable()
	}
	pattern, units, _ := strings.Cut(name, " ")
	cases := r.matching(pattern)
	if len(cases) == 0 {
		if _, exists := scenarioOf(pattern); exists {
			return "Not measured yet.\n"
		}
		return ""
	}
	return table(cases, strings.Fields(units))
}

// machines returns a line for each set of measurements: when, where and with what.
func (r *Report) machines() string {
	var lines []string
	for _, res := range r.results {
		get := res.GetConfig
		line := "- " + get(keyDate)
		if commit := get(keyCommit); commit != "" {
			line += ", commit " + commit
		}
		line += fmt.Sprintf(": %s, %s CPUs, %s %s/%s, go-sdk %s", get("cpu"), get("cpus"), get("go"), get("goos"), get("goarch"), get("go-sdk"))
		if res.GetConfig(keyQuick) != "" {
			line += ", **measured with --quick: do not quote these figures**"
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// figures returns the ratios that a reader wants to know first.
func (r *Report) figures() string {
	var b strings.Builder
	b.WriteString("| time of | relative to | ratio | measured by `bench --scenario` |\n|---|---|---:|---|\n")
	for _, f := range []struct{ what, base, name, how, by string }{
		{"a call over HTTP, 64 callers", "the same on a bare session of the SDK", "warm/transport=http-json/callers=64", clientName, bareName},
		{"a session for each call, 64 callers", "the same calls on one session of ours", "warm/transport=http-json/callers=64", perCallName, clientName},
		{"replacing an expired session, and the call", "`initialize` and a call with the SDK", "recovery/transport=http-json", clientName, bareName},
	} {
		c := r.find(f.name)
		if c == nil {
			continue
		}
		if ratios := c.ratios(f.how, f.by, c.timeUnit()); len(ratios) > 0 {
			fmt.Fprintf(&b, "| %s | %s | %s | `%s` |\n", f.what, f.base, format(median(ratios), ""), f.name)
		}
	}
	return b.String()
}

// addedTable returns what a warm call of one caller costs with the SDK alone, and what
// supervisor.Client adds.
func (r *Report) addedTable() string {
	costs := []struct{ unit, what string }{
		{p50, "median latency"}, {cpuPerOp, "CPU time"}, {allocsPerOp, "allocations"}, {bytesPerOp, "bytes allocated"},
	}
	var b strings.Builder
	for _, transport := range []string{"memory", "stdio", nameJSON, nameSSE} {
		c := r.find("warm/transport=" + transport + "/callers=1")
		if c == nil {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("| |")
			for _, cost := range costs {
				fmt.Fprintf(&b, " %s, %s |", cost.what, c.dates[cost.unit])
			}
			b.WriteString("\n|---|" + strings.Repeat("---:|", len(costs)) + "\n")
		}
		fmt.Fprintf(&b, "| %s |", transport)
		for _, cost := range costs {
			added := c.differences(clientName, bareName, cost.unit)
			if len(added) == 0 {
				b.WriteString(" - |")
				continue
			}
			bare, more, sign := median(c.values[series{bareName, cost.unit}]), median(added), "+"
			if more < 0 {
				more, sign = -more, "−"
			}
			fmt.Fprintf(&b, " %s %s %s (%.0f %%) |", format(bare, cost.unit), sign, format(more, cost.unit), 100*more/bare)
		}
		b.WriteString("\n")
	}
	return b.String()
}
