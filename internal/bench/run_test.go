package bench

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// runQuick measures the cases that match, and fails if a contender does.
func runQuick(t *testing.T, scenarios ...string) *Report {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	report, err := Run(t.Context(), Config{Scenarios: scenarios, Quick: true, Child: []string{self, serveArg}, Log: t.Output()})
	require.NoError(t, err)
	return report
}

func TestEveryContenderIsMeasuredBesideItsBaseline(t *testing.T) {
	report := runQuick(t, "warm/*/callers=1", "recovery", "herd", "churn/transport=http-json/*/*/callers=1", "registry/callers=1")
	require.Len(t, report.cases, 8)
	for _, c := range report.cases {
		require.Contains(t, c.contenders, c.baseline, c.name)
		for _, how := range c.contenders {
			require.Len(t, c.values[series{how, c.unit}], 2, "%s %s", c.name, how)
		}
	}
	require.Equal(t, 1.0, median(report.find("herd/transport=http-json/callers=20").values[series{clientName, rebuilds}]))
	require.Contains(t, report.targetTable(), "recovery/transport=http-json")

	var table, results bytes.Buffer
	require.NoError(t, report.WriteTable(&table))
	require.Contains(t, table.String(), "| transport=stdio/callers=1 |")
	require.NoError(t, report.Write(&results))
	require.Regexp(t, `(?m)^BenchmarkWarm/transport=memory/callers=1/how=message-\d+ \d+ .* ns/op`, results.String())
}

// H-C1
func TestAllKeysWorkSoonAfterAnOutage(t *testing.T) {
	report := runQuick(t, "outage")
	require.Len(t, report.cases, 3)
	for _, c := range report.cases {
		last := c.values[series{clientName, nsPerOp}]
		require.NotEmpty(t, last, c.name)
		for i := range last {
			require.LessOrEqual(t, time.Duration(last[i]), 5*time.Second, "%s: 3 s, and what the machine adds", c.name)
			require.LessOrEqual(t, c.values[series{clientName, p50}][i], last[i])
			require.Less(t, c.values[series{clientName, dials}][i], 40.0, c.name)
		}
	}
}

func TestCasesAndContendersAreSelectedByPattern(t *testing.T) {
	selected := func(cfg Config) (names []string, err error) {
		cases, err := cfg.selected([]*benchCase{{name: "warm/transport=http-json/callers=64", contenders: []contender{{name: bareName}, {name: "message-400"}}}})
		for _, c := range cases {
			for _, one := range c.contenders {
				names = append(names, one.name)
			}
		}
		return names, err
	}
	for pattern, want := range map[string]bool{
		"warm": true, "w*": true, "warm/transport=http-*": true, "warm/*/callers=64": true,
		"first": false, "warm/transport=memory": false, "warm/*/callers=6": false, "warm/*/*/*": false,
	} {
		names, err := selected(Config{Scenarios: []string{pattern}})
		require.Equal(t, want, err == nil, pattern)
		require.Equal(t, want, len(names) == 2, pattern)
	}
	for _, cfg := range []Config{{Scenarios: []string{"["}}, {How: []string{"["}}} {
		_, err := selected(cfg)
		require.ErrorContains(t, err, `"["`)
	}
	all, err := selected(Config{})
	require.NoError(t, err)
	require.Equal(t, []string{bareName, "message-400"}, all)
	some, err := selected(Config{How: []string{"message*"}})
	require.NoError(t, err)
	require.Equal(t, []string{"message-400"}, some)
	_, err = selected(Config{How: []string{"client"}})
	require.ErrorContains(t, err, `no case matches [] with a contender that matches ["client"]`)
}

func TestRunNeedsACaseAndAServer(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	_, err = Run(t.Context(), Config{Scenarios: []string{"cold"}, Child: []string{self, serveArg}})
	require.ErrorContains(t, err, `no case matches ["cold"]`)
	_, err = Run(t.Context(), Config{})
	require.ErrorContains(t, err, "Child")
}
