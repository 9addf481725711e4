package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// expectation is what a suite has to come to.
type expectation struct {
	// Release is that of the conformance package.
	Release string `json:"release"`
	Suite   string `json:"suite"`
	// Scenarios is how many scenarios are run, and Passed how many of their checks
	// are passed, at least.
	Scenarios int `json:"scenarios"`
	Passed    int `json:"passed"`
	// LeftOut are all checks that are not passed.
	LeftOut []leftOut `json:"leftOut"`
}

// leftOut are checks of a scenario that are not passed.
type leftOut struct {
	Scenario string   `json:"scenario"`
	Checks   []string `json:"checks"`
	// Status is what they are instead, such as FAILURE or SKIPPED.
	Status string `json:"status"`
	Reason string `json:"reason"`
}

// outcome is what a scenario came to.
type outcome struct {
	scenario string
	checks   []check
	failure  string // of the client, or empty
}

// good reports whether all checks are passed.
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

// The statuses of a check. All others are those of checks that are not passed.
const (
	statusPassed = "SUCCESS"
	statusNote   = "INFO" // it is none, but a line of the suite's log
)

// expectations reads what the suites have to come to.
func expectations() ([]expectation, error) {
	data, err := os.ReadFile("expected.json")
	if err != nil {
		return nil, err
	}
	var all []expectation
	return all, json.Unmarshal(data, &all)
}

// compare says what is not as expected.
func (e *expectation) compare(outcomes []outcome) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	passed := 0
	met := map[string]bool{} // what is left out, by scenario and check
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

// leavesOut reports whether a check that is not passed may be so.
func (e *expectation) leavesOut(scenario string, c check) bool {
	return slices.ContainsFunc(e.LeftOut, func(out leftOut) bool {
		return out.Scenario == scenario && out.Status == c.Status && slices.Contains(out.Checks, c.ID)
	})
}

// leavesOutSomeOf reports whether some check of a scenario is left out.
func (e *expectation) leavesOutSomeOf(scenario string) bool {
	return slices.ContainsFunc(e.LeftOut, func(out leftOut) bool { return out.Scenario == scenario })
}
