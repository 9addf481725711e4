package main

import (
	"fmt"
	"io"
	"time"
)

// claim is something that must hold at the end, with its violations.
type claim struct {
	text       string
	violations []string
}

// printClaims prints the claims, and reports whether all hold.
func printClaims(out io.Writer, claims []claim) (hold bool) {
	fmt.Fprintln(out)
	hold = true
	for _, c := range claims {
		mark := "✓"
		if len(c.violations) > 0 {
			mark, hold = "✗", false
		}
		fmt.Fprintf(out, "  %s  %s\n", mark, c.text)
		for _, violation := range c.violations[:min(len(c.violations), 10)] {
			fmt.Fprintf(out, "       %s\n", violation)
		}
	}
	return hold
}

// violation adds an error to violations, if it is one.
func violation(all []string, err error) []string {
	if err != nil {
		all = append(all, err.Error())
	}
	return all
}

func short(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
