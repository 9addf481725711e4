package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"time"
)

const (
	// caseTimeout bounds a case, whatever hangs.
	caseTimeout = 5 * time.Minute
	// maxOps bounds the operations of a round.
	maxOps = 200_000
)

// Config says what to measure, and for how long.
type Config struct {
	// Scenarios are patterns, as of [path.Match], of cases or of the first parts of
	// their names: "warm", "warm/transport=http-*", "warm/*/callers=64". None selects
	// all cases.
	Scenarios []string
	// How are patterns of contenders, such as "client*". None selects all. Ratios need
	// the baseline.
	How []string
	// Rounds is how many turns each contender has. Defaults to 11.
	Rounds int
	// RoundTime is about how long a turn takes. Defaults to 400 ms.
	RoundTime time.Duration
	// Quick makes everything small: it shows that the suite works.
	Quick bool
	// Child is the command of this program that calls [Serve]. The mode is appended.
	Child []string
	// Others is the directory with the clients of other libraries, or empty.
	Others string
	// Log gets the progress. Defaults to none.
	Log io.Writer
}

func (c Config) withDefaults() Config {
	rounds, roundTime := 11, 400*time.Millisecond
	if c.Quick {
		rounds, roundTime = 2, 5*time.Millisecond
	}
	c.Rounds, c.RoundTime = cmp.Or(c.Rounds, rounds), cmp.Or(c.RoundTime, roundTime)
	if c.Log == nil {
		c.Log = io.Discard
	}
	return c
}

// selected returns the cases to measure, with the contenders to measure.
func (c Config) selected(all []*benchCase) (selected []*benchCase, err error) {
	for _, pattern := range slices.Concat(c.Scenarios, c.How) {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("bench: pattern %q: %w", pattern, err)
		}
	}
	for _, one := range all {
		one.contenders = slices.DeleteFunc(one.contenders, func(of contender) bool { return !matchesAny(c.How, of.name) })
		if matchesAny(c.Scenarios, one.name) && len(one.contenders) > 0 {
			selected = append(selected, one)
		}
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("bench: no case matches %q with a contender that matches %q", c.Scenarios, c.How)
	}
	return selected, nil
}

// Run measures. The report does not have the cases that failed; Run returns their errors
// together with the report. When ctx ends, the report has the cases that are complete.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	p, err := newSetup(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer p.close()
	cases, err := cfg.selected(p.cases())
	if err != nil {
		return nil, err
	}
	report, machine := new(Report), machineConfig(cfg)
	var errs []error
	for _, c := range cases {
		began := time.Now()
		fmt.Fprintf(cfg.Log, "%s ...", c.name)
		turns, err := c.run(ctx, cfg)
		fmt.Fprintf(cfg.Log, " %v\n", time.Since(began).Round(10*time.Millisecond))
		if ctx.Err() != nil {
			return report, context.Cause(ctx)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("bench: %s: %w", c.name, err))
			continue
		}
		for _, t := range turns {
			for _, s := range t.rounds {
				report.add(machine, c.name, t.name, t.ops, s)
			}
		}
	}
	return report, errors.Join(errs...)
}

// turn is a contender with the samples of its rounds.
type turn struct {
	*running
	name   string
	ops    int // of a round
	rounds []sample
}

// run lets the contenders take turns.
func (c *benchCase) run(ctx context.Context, cfg Config) (turns []*turn, err error) {
	ctx, cancel := context.WithTimeout(ctx, caseTimeout)
	defer cancel()
	defer func() {
		for _, t := range turns {
			err = errors.Join(err, t.close())
		}
	}()
	for _, one := range c.contenders {
		r, err := one.start(ctx)
		if errors.Is(err, errNotInstalled) {
			fmt.Fprintf(cfg.Log, " (%s: %v)", one.name, err)
			continue
		}
		if err != nil {
			return turns, fmt.Errorf("%s: %w", one.name, err)
		}
		t := &turn{running: r, name: one.name, ops: c.ops}
		turns = append(turns, t)
		if t.ops > 0 {
			continue
		}
		if t.ops, err = c.fit(ctx, cfg, r); err != nil {
			return turns, fmt.Errorf("%s: %w", one.name, err)
		}
	}
	rounds := cfg.Rounds
	if c.rounds > 0 {
		rounds = min(rounds, c.rounds)
	}
	for round := range rounds {
		for i := range turns {
			t := turns[(i+round)%len(turns)]
			s, err := t.round(ctx, t.ops)
			if err != nil {
				return turns, fmt.Errorf("%s: %w", t.name, err)
			}
			t.rounds = append(t.rounds, s)
		}
	}
	return turns, nil
}

// fit warms a contender up, and returns how many operations fit into the round time.
func (c *benchCase) fit(ctx context.Context, cfg Config, r *running) (ops int, err error) {
	least := max(1, c.callers)
	ops = least
	for range 2 {
		s, err := r.round(ctx, ops)
		if err != nil {
			return 0, err
		}
		ops = min(maxOps, max(2*least, int(float64(cfg.RoundTime)/max(1, s[nsPerOp]))))
		if cfg.Quick {
			break
		}
	}
	return ops, nil
}
