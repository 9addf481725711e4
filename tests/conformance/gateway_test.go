//go:build conformance

package conformance

import "testing"

// core are the scenarios of the suite "core" that the client of the SDK plays over a gateway. Left out are:
//   - auth/*: the configuration of a server authorizes its sessions, and a client of a gateway has no part in that;
//   - outside of the suite, those of protocol 2026-07-28 alone: a server gets the revision of the client, which is one with initialize.
//
// No suite has a scenario of sampling or roots.
var core = []string{"initialize", "tools_call", "elicitation-sep1034-client-defaults", timed}

// schemas is the scenario of what a client leaves of the schema of a tool.
const schemas = "json-schema-2020-12-preservation"

// The client of the SDK conforms over each transport of a gateway: what it says and what it is asked reaches the other side.
func TestClientOfTheSDKConformsThroughAGateway(t *testing.T) {
	folder := buildClient(t)
	for _, row := range []struct {
		release, way string
		scenarios    []string
		passed       int
	}{
		{"0.1.16", "server", core, 10},
		{"0.1.16", "tools", core, 10},
		{tasksRelease, "server", append(core[:len(core):len(core)], schemas), 20},
		{tasksRelease, "tools", core, 11}, // a toolset leaves out keywords that models refuse
	} {
		t.Run(row.release+"/"+row.way, func(t *testing.T) {
			var all []outcome
			var output []byte
			for _, scenario := range row.scenarios {
				outcomes, said := run(t, folder, "./client "+row.way, row.release, "--scenario", scenario)
				all, output = append(all, outcomes...), append(output, said...)
			}
			expected := expectation{Scenarios: len(row.scenarios), Passed: row.passed}
			expected.check(t, all, output)
		})
	}
}
