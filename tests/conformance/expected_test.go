package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// expectation is the expected outcome of a suite.
type expectation struct {
	// Release is the release of the conformance package.
	Release string `json:"release"`
	Suite   string `json:"suite"`
	// Scenarios is the number of scenarios that run. Passed is the least number of their
	// checks that pass.
	Scenarios int `json:"scenarios"`
	Passed    int `json:"passed"`
	// LeftOut are all checks that do not pass.
	LeftOut []leftOut `json:"leftOut"`
}

// leftOut are checks of a scenario that do not pass.
type leftOut struct {
	Scenario string   `json:"scenario"`
	Checks   []string `json:"checks"`
	// Status is the status that they have instead, such as FAILURE or SKIPPED.
	Status string `json:"status"`
	Reason string `json:"reason"`
}

// outcome is the outcome of a scenario.
type outcome struct {
	scenario string
	checks   []check
	failure  string // of the client, or empty
}

// good reports whether all checks passed.
func (o *outcome) good() bool {
	return !slices.ContainsFunc(o.checks, func(c check) bool { return c.Status != statusPassed && c.Status != statusNote })
}

// check is one check, as the suite reports it. Some are reported more than once.
type check struct {
	ID           string `json:"id"`
	Status       string `json:"status"`
	Description  string `json:"description"`
	ErrorMessage string `json:"errorMessage"`
}

// The statuses of a check. A check with any other status has not passed.
const (
	statusPassed = "SUCCESS"
	statusNote   = "INFO" // not a check, but a line of the log of the suite
)

// expectations reads the expected outcomes of the suites.
func expectations() ([]expectation, error) {
	data, err := os.ReadFile("expected.json")
	if err != nil {
		return nil, err
	}
	var all []expectation
	return all, json.Unmarshal(data, &all)
}

// compare returns the differences between the outcomes and the expectation.
func (e *expectation) compare(outcomes []outcome) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	passed := 0
	met := map[string]bool{} // the checks that are left out, by scenario and check
	for _, o := range outcomes {
		for _, c := range o.checks {
			switch {
			case c.Status == statusPassed:
				passed++
			case c.Status == statusNote:
			case e.leavesOut(o.scenario, c):
				met[o.scenario+" "+c.ID] = true
			default:
				say("%s: %s: %s: %s", o.scenario, c.ID, c.Status, strings.TrimSpace(c.Description+" "+c.ErrorMessage))
			}
		}
		if o.failure != "" && !e.leavesOutSomeOf(o.scenario) {
			say("%s: the client failed: %s", o.scenario, o.failure)
		}
	}
	for _, out := range e.LeftOut {
		for _, id := range out.Checks {
			if !met[out.Scenario+" "+id] {
				say("%s: %s: is not %s: it is not left out any more", out.Scenario, id, out.Status)
			}
		}
	}
	if len(outcomes) < e.Scenarios {
		say("%d scenarios were run: these are less than %d", len(outcomes), e.Scenarios)
	}
	if passed < e.Passed {
		say("%d checks were passed: these are less than %d", passed, e.Passed)
	}
	return wrong
}

// leavesOut reports whether a check that has not passed is left out.
func (e *expectation) leavesOut(scenario string, c check) bool {
	return slices.ContainsFunc(e.LeftOut, func(out leftOut) bool {
		return out.Scenario == scenario && out.Status == c.Status && slices.Contains(out.Checks, c.ID)
	})
}

// leavesOutSomeOf reports whether some check of a scenario is left out.
func (e *expectation) leavesOutSomeOf(scenario string) bool {
	return slices.ContainsFunc(e.LeftOut, func(out leftOut) bool { return out.Scenario == scenario })
}
