package bench

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// quickly measures what matches, and fails if a contender does.
func quickly(t *testing.T, scenarios ...string) *Report {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	report, err := Run(t.Context(), Config{Scenarios: scenarios, Quick: true, Child: []string{self, serveArg}, Log: t.Output()})
	require.NoError(t, err)
	return report
}

func TestEveryContenderIsMeasuredBesideItsBaseline(t *testing.T) {
	report := quickly(t, "warm/*/callers=1", "recovery", "herd", "churn/transport=http-json/*/*/callers=1")
	for _, c := range report.Cases {
		require.NotNil(t, c.Contender(c.Baseline), c.Name)
		for _, one := range c.Contenders {
			if one.Skipped != "" {
				require.Equal(t, errNotThere.Error(), one.Skipped, c.Name)
				continue
			}
			require.Len(t, one.Rounds, 2, "%s %s", c.Name, one.Name)
			for _, s := range one.Rounds {
				require.Contains(t, s, c.Unit, "%s %s", c.Name, one.Name)
			}
		}
	}
	require.Equal(t, 1.0, report.find(t, "herd/transport=http-json/callers=20").Contender(nameClient).Median[Rebuilds])
	require.NotEmpty(t, report.Checks())

	var table, benchfmt bytes.Buffer
	require.NoError(t, report.WriteTable(&table))
	require.Contains(t, table.String(), "warm/transport=stdio/callers=1")
	require.NoError(t, report.WriteBenchfmt(&benchfmt))
	require.Regexp(t, `(?m)^BenchmarkWarm/transport=memory/callers=1/how=message-\d+ 1 .* ns/op`, benchfmt.String())

	dir := t.TempDir()
	var written bytes.Buffer
	require.NoError(t, report.WriteJSON(&written))
	file := filepath.Join(dir, "report.json")
	require.NoError(t, os.WriteFile(file, written.Bytes(), 0o600))
	again, err := Read(file)
	require.NoError(t, err)
	require.Equal(t, report, again)

	require.NoError(t, report.Plot(dir))
	plots, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	require.NoError(t, err)
	require.NotEmpty(t, plots)
	for _, plot := range plots {
		text, err := os.ReadFile(plot)
		require.NoError(t, err)
		require.NoError(t, wellFormed(text), plot)
		require.NotContains(t, string(text), "NaN", plot)
	}
}

func TestWhatMakesHTTPSlowIsCounted(t *testing.T) {
	report := quickly(t, "within", "warm/transport=http-json/callers=8")
	for _, c := range report.Cases {
		for _, name := range []string{nameBare, nameUntuned, nameMutexMap, nameMessage, nameClient} {
			for _, s := range c.Contender(name).Rounds {
				require.Contains(t, s, ConnsPerOp, "%s %s", c.Name, name)
				require.Less(t, s[ConnsPerOp], 1.0, "%s %s", c.Name, name)
			}
		}
	}
}

// Finding C1
func TestAllKeysWorkSoonAfterAnOutage(t *testing.T) {
	report := quickly(t, "outage")
	require.Len(t, report.Cases, 3)
	for _, c := range report.Cases {
		ours := c.Contender(nameClient)
		require.Len(t, ours.Rounds, 1, c.Name)
		for _, s := range ours.Rounds {
			require.LessOrEqual(t, time.Duration(s[NsPerOp]), 5*time.Second, "%s: 3 s, and what the machine adds", c.Name)
			require.LessOrEqual(t, s[P50], s[NsPerOp])
			require.Less(t, s[Dials], 40.0, c.Name)
		}
	}
}

func TestGarbageCollectionIsAsBeforeAfterItsScenario(t *testing.T) {
	percent, limit := debug.SetGCPercent(150), debug.SetMemoryLimit(1<<40)
	defer debug.SetGCPercent(percent)
	defer debug.SetMemoryLimit(limit)
	report := quickly(t, "gc/*/callers=1")
	require.Len(t, report.Cases, 2)
	for _, c := range report.Cases {
		require.Len(t, c.Contenders, 4)
		for _, one := range c.Contenders {
			require.Positive(t, one.Median[PeakHeap], "%s %s", c.Name, one.Name)
			require.Positive(t, one.Median[OpsPerGC], "%s %s", c.Name, one.Name)
		}
	}
	require.Equal(t, 150, debug.SetGCPercent(150))
	require.EqualValues(t, 1<<40, debug.SetMemoryLimit(-1))
}

func TestSessionsInAGigabyte(t *testing.T) {
	for _, c := range []struct {
		median Sample
		want   string
	}{
		{Sample{BytesPerSession: 1 << 19}, "1024"},
		{Sample{BytesPerSession: 1 << 19, ServerBytes: 7 << 20}, "128"},
		{Sample{BytesPerSession: -5}, "-"}, // lost in the noise
		{Sample{NsPerOp: 5}, "-"},
	} {
		c.median.density()
		one := CaseResult{Contenders: []Result{{Name: nameBare, Median: c.median}}}
		require.Equal(t, c.want, one.cell(nameBare, SessionsPerGiB))
	}
}

func TestStdioServersAreWeighed(t *testing.T) {
	if _, err := pssOf(os.Getpid()); err != nil {
		t.Skip("the system does not say what a process weighs")
	}
	c := quickly(t, "idle/transport=stdio").find(t, "idle/transport=stdio/stream=with")
	for _, one := range c.Contenders {
		require.Greater(t, one.Median[ServerBytes], 100e3, one.Name)
	}
}

func wellFormed(text []byte) error {
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (r *Report) find(t *testing.T, name string) *CaseResult {
	t.Helper()
	for i := range r.Cases {
		if r.Cases[i].Name == name {
			return &r.Cases[i]
		}
	}
	require.Fail(t, "there is no such case", name)
	return nil
}

func TestScenariosAreChosenByPattern(t *testing.T) {
	c := &Case{Scenario: "warm", Params: params("transport", "http-json", "callers", 64), contenders: []contender{{name: nameBare}, {name: "client-400"}}}
	for pattern, wanted := range map[string]bool{
		"warm": true, "w*": true, "warm/transport=http-*": true, "warm/*/callers=64": true,
		"first": false, "warm/transport=memory": false, "warm/*/callers=6": false, "warm/*/*/*": false,
	} {
		got, err := Config{Scenarios: []string{pattern}}.wants(c)
		require.NoError(t, err)
		require.Equal(t, wanted, got, pattern)
	}
	_, err := Config{Scenarios: []string{"["}}.wants(c)
	require.ErrorContains(t, err, `"["`)
	all, err := Config{}.wants(c)
	require.NoError(t, err)
	require.True(t, all)
	require.Len(t, c.contenders, 2)

	_, err = Config{How: []string{"["}}.wants(&Case{contenders: c.contenders})
	require.ErrorContains(t, err, `"["`)
	some, err := Config{How: []string{"client*"}}.wants(c)
	require.NoError(t, err)
	require.True(t, some)
	require.Len(t, c.contenders, 1)
	require.Equal(t, "client-400", c.contenders[0].name)
	none, err := Config{How: []string{"message"}}.wants(c)
	require.NoError(t, err)
	require.False(t, none)
}

func TestRoundsOfACaseCanBeLonger(t *testing.T) {
	cfg := Config{}.withDefaults()
	require.Equal(t, cfg.RoundTime, (&Case{}).roundTime(cfg))
	require.Equal(t, 3*cfg.RoundTime, (&Case{Longer: 3}).roundTime(cfg))
	cfg.Quick = true
	require.Equal(t, cfg.RoundTime, (&Case{Longer: 3}).roundTime(cfg))
}

// invented returns a report of one case.
func invented() *Report {
	of := func(name string, values ...float64) Result {
		r := Result{Name: name}
		for _, v := range values {
			r.Rounds = append(r.Rounds, Sample{NsPerOp: v, P50: v, AllocsPerOp: 10})
		}
		return r
	}
	c := CaseResult{
		Name: "warm/transport=memory/callers=1", Scenario: "warm", Params: params("transport", "memory", "callers", 1),
		About: "a call", Baseline: nameBare, Unit: NsPerOp,
		Contenders: []Result{of(nameBare, 100, 1000, 10, 10, 100), of(nameClient, 110, 1200, 10, 10, 120), {Name: "node", Skipped: "not there"}},
	}
	c.summarize()
	return &Report{Schema: Schema, Go: "go1.26", Rounds: 3, Cases: []CaseResult{c}}
}

func TestRatiosAreTakenWithinARound(t *testing.T) {
	r := invented()
	client := r.Cases[0].Contender(nameClient)
	require.InDelta(t, 1.1, client.Ratio, 1e-9, "the median of 1.1, 1.2, 1.0, 1.0 and 1.2")
	require.InDelta(t, 110, client.Median[NsPerOp], 1e-9)
	require.Zero(t, r.Cases[0].Contender("node").Ratio)
	require.Zero(t, r.Cases[0].Ratio(nameClient, "node", NsPerOp))

	var ours strings.Builder
	r.ours(&ours)
	require.Contains(t, ours.String(), "| memory | latency, median | 100ns |  | 10ns (+10 %) |\n|  | allocations | 10 |  | 0 (+0 %) |\n")
	require.NotContains(t, ours.String(), "CPU", "nobody has measured it")

	checks := r.Checks()
	require.Contains(t, checks[0].What, "latency")
	require.InDelta(t, 1.1, checks[0].Value, 1e-9)
	require.Equal(t, "uncertain", checks[0].Verdict(), "1.05 is between 1.0 and 1.2")
	checks[0].Limit = 0
	require.Empty(t, checks[0].Verdict(), "there is no target")
}

func TestSectionsOfADocumentAreWrittenAnew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.md")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("# Title\n<!-- bench: warm -->\nold\n<!-- bench end -->\nbetween\n<!-- bench: warm allocs/op -->\n<!-- bench end -->\nend\n")
	require.NoError(t, invented().Document(file))
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(first), "old")
	require.Contains(t, string(first), "| `client` | 110ns (1.10) |")
	require.Contains(t, string(first), "| `node` | not there |")
	require.Contains(t, string(first), "| `client` | 10 |")
	require.True(t, strings.HasSuffix(string(first), "<!-- bench end -->\nend\n"))

	require.NoError(t, invented().Document(file))
	second, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(first), string(second))

	write("<!-- bench: nonsense -->\n<!-- bench end -->\n")
	require.ErrorContains(t, invented().Document(file), "nonsense")
}

// All that can be shown has its place in the document.
func TestTheDocumentHasAllScenarios(t *testing.T) {
	text, err := os.ReadFile("../../docs/performance.md")
	require.NoError(t, err)
	p := newTestPlace(t)
	for _, c := range p.cases() {
		require.True(t, strings.Contains(string(text), "<!-- bench: "+c.Scenario+" "), c.Scenario)
	}
}

func TestReportsOfAnotherSchemaAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	text, err := json.Marshal(Report{Schema: Schema + 1})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	_, err = Read(file)
	require.ErrorContains(t, err, "measure again")
}

func TestValuesAreWrittenForPeople(t *testing.T) {
	for _, c := range []struct {
		value float64
		unit  string
		want  string
	}{
		{1234567, NsPerOp, "1.23ms"},
		{999, P99, "999ns"},
		{4096, BytesPerSession, "4096 B"},
		{27_000, HeapBytes, "27.0 KB"},
		{250_000_000, PeakHeap, "250.0 MB"},
		{-12_345, NsPerOp, "-12.3µs"},
		{12, AllocsPerOp, "12"},
		{1.054, "", "1.05"},
		{253.4, AllocsPerOp, "253"},
	} {
		require.Equal(t, c.want, Format(c.value, c.unit))
	}
}

func TestFiguresAreThoseThatWereMeasured(t *testing.T) {
	report, err := Read("../../docs/performance.json")
	require.NoError(t, err)
	require.False(t, report.Quick)
	for _, name := range []string{"../../docs/performance.md", "../../README.md"} {
		written, err := os.ReadFile(name)
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "copy.md")
		require.NoError(t, os.WriteFile(file, written, 0o600))
		require.NoError(t, report.Document(file))
		again, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(written), string(again), "%s: run demo bench report docs/performance.json", name)
	}
}
