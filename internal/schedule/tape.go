// Package schedule has what the simulations of this module and of the module cluster share: the choices of a schedule, and
// how a schedule that fails is shortened. Tests import it, and nothing else does.
package schedule

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
)

// Tape has all choices of a schedule. It is divided into parts: the first one has the configuration, the last one the
// end, and each of the others an action with the steps that follow it. So a schedule is shortened by whole actions,
// and what is left of it means the same. 0 is the simplest choice, and what a part has not chosen.
type Tape struct {
	rand  *rand.Rand // nil to replay
	given [][]int    // the choices to replay
	parts [][]int    // the choices that were made
}

// Record returns a tape whose choices are random.
func Record(seed uint64) *Tape { return &Tape{rand: rand.New(rand.NewPCG(seed, 0))} }

// Replay returns a tape whose choices are given.
func Replay(given [][]int) *Tape { return &Tape{given: given} }

// Part begins the next part.
func (t *Tape) Part() { t.parts = append(t.parts, nil) }

// Parts returns the choices that were made, by part.
func (t *Tape) Parts() [][]int { return t.parts }

// Actions returns how many actions the schedule has, if that is given.
func (t *Tape) Actions() (n int, given bool) { return max(0, len(t.given)-2), t.rand == nil }

// Choose makes one of n choices, which propose does if it is not given.
func (t *Tape) Choose(n int, propose func(r *rand.Rand) int) (choice int) {
	at := len(t.parts) - 1
	if n > 1 {
		switch i := len(t.parts[at]); {
		case t.rand != nil:
			choice = propose(t.rand)
		case at < len(t.given) && i < len(t.given[at]):
			choice = t.given[at][i] % n
		}
	}
	t.parts[at] = append(t.parts[at], choice)
	return choice
}

// N makes one of n choices that are equally likely.
func (t *Tape) N(n int) int { return t.Choose(n, func(r *rand.Rand) int { return r.IntN(n) }) }

// Rarely makes one of n choices: 0, but for one time in some.
func (t *Tape) Rarely(n, in int) int {
	return t.Choose(n, func(r *rand.Rand) int {
		if n == 1 || r.IntN(in) > 0 {
			return 0
		}
		return 1 + r.IntN(n-1)
	})
}

// Weighted chooses an index, as likely as its weight.
func (t *Tape) Weighted(weights []int) int {
	return t.Choose(len(weights), func(r *rand.Rand) int {
		sum := 0
		for _, w := range weights {
			sum += w
		}
		at := r.IntN(sum)
		for i, w := range weights {
			if at -= w; at < 0 {
				return i
			}
		}
		return 0
	})
}

// Write writes the choices to a file: a line for each part, after lines that say what they show.
func Write(path string, parts [][]int, shows string) error {
	var b strings.Builder
	for line := range strings.Lines(shows) {
		fmt.Fprintf(&b, "# %s\n", strings.TrimSpace(line))
	}
	for _, part := range parts {
		b.WriteString(strings.Trim(fmt.Sprint(part), "[]") + "\n")
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// Read reads such a file.
func Read(path string) (parts [][]int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		part := []int{}
		for _, field := range strings.Fields(lines.Text()) {
			choice, err := strconv.Atoi(field)
			if err != nil || choice < 0 {
				return nil, fmt.Errorf("%s: %q is not a choice", path, field)
			}
			part = append(part, choice)
		}
		parts = append(parts, part)
	}
	return parts, nil
}
