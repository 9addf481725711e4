package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"
)

// inventedReport returns a report of one case.
func inventedReport() *Report {
	r := new(Report)
	machine := []benchfmt.Config{{Key: "cpu", Value: []byte("fast"), File: true}, {Key: keyDate, Value: []byte("2026-11-22"), File: true}}
	add := func(how string, values ...float64) {
		for _, v := range values {
			r.add(machine, "warm/transport=memory/callers=1", how, 7, sample{nsPerOp: v, p50: v, allocsPerOp: 10})
		}
	}
	add(bareName, 100, 1000, 10, 10, 100)
	add(clientName, 110, 1200, 10, 10, 120)
	return r
}

func TestRatiosAreTakenWithinARound(t *testing.T) {
	r := inventedReport()
	c := r.find("warm/transport=memory/callers=1")
	require.InDelta(t, 1.1, median(c.ratios(clientName, bareName, nsPerOp)), 1e-9, "the median of 1.1, 1.2, 1.0, 1.0 and 1.2")
	require.Equal(t, "110.0ns", c.median(clientName, nsPerOp))
	require.Empty(t, c.ratios(clientName, "node", nsPerOp))
	require.Empty(t, c.ratios(clientName, bareName, cpuPerOp))

	added := r.addedTable()
	require.Contains(t, added, "| | median latency, 2026-11-22 | CPU time, ")
	require.Contains(t, added, "| memory | 100.0ns + 10.00ns (10 %) | - | 10 + 0 (0 %) | - |\n", "CPU time is not measured")
}

func TestATargetWithinTheInterquartileRangeIsUncertain(t *testing.T) {
	worst, found := inventedReport().worst(target{"latency", []string{clientName}, "warm/*/callers=1", ratio, bareName, "", 1.05})
	require.True(t, found)
	require.Equal(t, "warm/transport=memory/callers=1/how=client", worst.where)
	require.InDelta(t, 1.1, worst.median, 1e-9)
	require.Equal(t, "uncertain", worst.verdict(), "1.05 is between 1.0 and 1.2")
	for limit, want := range map[float64]string{1: "missed", 1.3: "met"} {
		worst.limit = limit
		require.Equal(t, want, worst.verdict())
	}
	_, found = inventedReport().worst(target{"latency", []string{clientName}, "recovery", ratio, bareName, "", 1.05})
	require.False(t, found)
}

func TestTheContenderFurthestFromATargetIsShown(t *testing.T) {
	r := new(Report)
	for name, v := range map[string]float64{bareName: 100, messageName: 90, clientName: 120} {
		r.add(nil, "warm/transport=memory/callers=64", name, 1, sample{nsPerOp: v})
	}
	for kind, want := range map[figure]float64{ratio: 1.2, difference: 20, value: 120} {
		worst, _ := r.worst(target{"time", []string{clientName, messageName}, "warm", kind, bareName, "", 1})
		require.InDelta(t, want, worst.median, 1e-9)
		require.Contains(t, worst.where, "how=client")
	}
}

func TestSpreadIsTheMedianAndTheInterquartileRange(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	s := spreadOf(values)
	require.Equal(t, 3.0, s.median)
	require.Less(t, s.low, 2.0)
	require.Greater(t, s.high, 4.0)
	require.Equal(t, []float64{5, 1, 4, 2, 3}, values, "the order of the rounds is kept")
	require.Equal(t, spread{7, 7, 7}, spreadOf([]float64{7}))
}

func TestReportsAreReadAsTheyWereWritten(t *testing.T) {
	var written, again bytes.Buffer
	require.NoError(t, inventedReport().Write(&written))
	file := filepath.Join(t.TempDir(), "report.txt")
	require.NoError(t, os.WriteFile(file, written.Bytes(), 0o600))
	r, err := Read(file)
	require.NoError(t, err)
	require.NoError(t, r.Write(&again))
	require.Equal(t, written.String(), again.String())
	require.Equal(t, "110.0ns", r.find("warm/transport=memory/callers=1").median(clientName, nsPerOp))
}

func TestFilesThatAreNoReportAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "no results",
		"PASS\n":                                "no results",
		"BenchmarkWarm/callers=1-2 1 5 ns/op\n": "no contender",
		"BenchmarkOther/how=bare-2 1 5 ns/op\n": "no scenario",
		"BenchmarkWarm/how=bare-2 one\n":        "report.txt:1",
	} {
		file := filepath.Join(t.TempDir(), "report.txt")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := Read(file)
		require.ErrorContains(t, err, want, text)
	}
	_, err := Read(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestSectionsOfADocumentAreGenerated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.md")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("# Title\n<!-- bench: warm -->\nold\n<!-- bench end -->\nbetween\n<!-- bench: warm/*/callers=1 allocs/op -->\n<!-- bench end -->\nend\n")
	require.NoError(t, inventedReport().Document(file))
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(first), "old")
	require.Contains(t, string(first), "ns/op, 2026-11-22 (relative to `bare`):\n")
	require.Contains(t, string(first), " 110.0ns (1.10) |")
	require.Contains(t, string(first), "| transport=memory/callers=1 | 10 | 10 |\n")
	require.True(t, strings.HasSuffix(string(first), "<!-- bench end -->\nend\n"))

	require.NoError(t, inventedReport().Document(file))
	second, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(first), string(second))

	write("<!-- bench: large bodies/op -->\n<!-- bench end -->\n")
	require.NoError(t, inventedReport().Document(file))
	missing, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(missing), "-->\nNot measured yet.\n<!--")

	write("<!-- bench: nonsense -->\n<!-- bench end -->\n")
	require.ErrorContains(t, inventedReport().Document(file), "nonsense")
}

func TestValuesAreFormattedForAReader(t *testing.T) {
	for _, c := range []struct {
		value float64
		unit  string
		want  string
	}{
		{1234567, nsPerOp, "1.235ms"},
		{999, p50, "999.0ns"},
		{-12_345, nsPerOp, "-12.35µs"},
		{4096, bytesPerSession, "4.000KiB"},
		{663, bytesPerSession, "663.0B"},
		{12, allocsPerOp, "12"},
		{253.4, allocsPerOp, "253"},
		{1.054, "", "1.05"},
		{8, "", "8.00"},
	} {
		require.Equal(t, c.want, format(c.value, c.unit))
	}
}

// Each scenario has its place in the document.
func TestTheDocumentHasAllScenarios(t *testing.T) {
	text, err := os.ReadFile("../../docs/performance.md")
	require.NoError(t, err)
	for _, s := range scenarios {
		require.Regexp(t, "<!-- bench: "+s.name+"[ /]", string(text))
	}
}

func TestFiguresAreThoseThatWereMeasured(t *testing.T) {
	report, err := Read("../../docs/performance.txt")
	require.NoError(t, err)
	require.NotContains(t, report.machines(), "--quick")
	for _, name := range []string{"../../docs/performance.md", "../../README.md"} {
		written, err := os.ReadFile(name)
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "copy.md")
		require.NoError(t, os.WriteFile(file, written, 0o600))
		require.NoError(t, report.Document(file))
		again, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(written), string(again), "%s: run bench report docs/performance.txt", name)
	}
}
