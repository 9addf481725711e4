package main

import (
	"fmt"
	"io"
	"runtime"
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

// within reports whether f returns within a limit.
func within(limit time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// goroutinesLeft waits up to three seconds until there are no more goroutines than before,
// and describes the surplus.
func goroutinesLeft(before int) (left []string) {
	for range 150 {
		if runtime.NumGoroutine() <= before {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	stacks := make([]byte, 64<<10)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return []string{fmt.Sprintf("%d goroutines more than before\n%s", runtime.NumGoroutine()-before, stacks)}
}

// calls returns a number of calls in words.
func calls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprint(n, " calls")
}

func short(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
