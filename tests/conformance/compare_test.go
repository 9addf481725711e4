package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNothingIsWrongWhenAllIsAsExpected(t *testing.T) {
	e := expectation{Scenarios: 2, Passed: 2, LeftOut: []leftOut{{Scenario: "b", Checks: []string{"3"}, Status: "FAILURE", Reason: "why"}}}
	require.Empty(t, e.compare([]outcome{
		{scenario: "a", checks: []check{{ID: "1", Status: "SUCCESS"}, {ID: "0", Status: "INFO"}}},
		{scenario: "b", checks: []check{{ID: "2", Status: "SUCCESS"}, {ID: "3", Status: "FAILURE"}}, failure: "as it has to"},
	}))
}

func TestWhatIsNotAsExpectedIsNamed(t *testing.T) {
	good := outcome{scenario: "a", checks: []check{{ID: "1", Status: "SUCCESS"}}}
	for name, c := range map[string]struct {
		expected expectation
		got      []outcome
		want     string
	}{
		"a check fails": {
			got: []outcome{{scenario: "a", checks: []check{{ID: "1", Status: "FAILURE", Description: "it must", ErrorMessage: "but did not"}}}}, want: "a: 1: FAILURE: it must but did not",
		},
		"a check warns": {
			got: []outcome{{scenario: "a", checks: []check{{ID: "1", Status: "WARNING"}}}}, want: "a: 1: WARNING",
		},
		"a check is skipped": {
			got: []outcome{{scenario: "a", checks: []check{{ID: "1", Status: "SKIPPED"}}}}, want: "a: 1: SKIPPED",
		},
		"another check of a scenario that is left out fails": {
			expectation{LeftOut: []leftOut{{"a", []string{"1"}, "FAILURE", "why"}}},
			[]outcome{{scenario: "a", checks: []check{{ID: "1", Status: "FAILURE"}, {ID: "2", Status: "FAILURE"}}}},
			"a: 2: FAILURE",
		},
		"what is left out passes": {
			expectation{LeftOut: []leftOut{{"a", []string{"1"}, "FAILURE", "why"}}}, []outcome{good}, "a: 1: is not FAILURE",
		},
		"what is left out is not there": {
			expectation{LeftOut: []leftOut{{"b", []string{"1"}, "FAILURE", "why"}}}, []outcome{good}, "b: 1: is not FAILURE",
		},
		"what is left out does not pass in another way": {
			expectation{LeftOut: []leftOut{{"a", []string{"1"}, "SKIPPED", "why"}}},
			[]outcome{{scenario: "a", checks: []check{{ID: "1", Status: "FAILURE"}, {ID: "1", Status: "SKIPPED"}}}},
			"a: 1: FAILURE",
		},
		"the client fails":        {got: []outcome{{scenario: "a", checks: good.checks, failure: "why"}}, want: "a: the client failed: why"},
		"scenarios are missing":   {expectation{Scenarios: 2}, []outcome{good}, "1 scenarios were run: these are less than 2"},
		"checks are missing":      {expectation{Passed: 2}, []outcome{good}, "1 checks were passed: these are less than 2"},
		"the suite did not start": {expectation{Scenarios: 1}, nil, "0 scenarios"},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := c.expected.compare(c.got)
			require.Len(t, wrong, 1)
			require.Contains(t, wrong[0], c.want)
		})
	}
}

// Each scenario that is left out is in the repository, with a reason.
func TestExpectationsAreComplete(t *testing.T) {
	all, err := expectations()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, e := range all {
		name := e.Release + " " + e.Suite
		require.NotEmpty(t, e.Release, name)
		require.NotEmpty(t, e.Suite, name)
		require.Positive(t, e.Scenarios, name)
		require.Positive(t, e.Passed, name)
		for _, out := range e.LeftOut {
			require.NotEmpty(t, out.Reason, "%s: %s", name, out.Scenario)
			require.NotEmpty(t, out.Status, "%s: %s", name, out.Scenario)
			require.NotEmpty(t, out.Checks, "%s: %s", name, out.Scenario)
		}
	}
}
