package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

const (
	// caseLimit bounds a case, whatever hangs.
	caseLimit = 5 * time.Minute
	// maxOps bounds a round.
	maxOps = 200_000
)

// Config says what to measure, and how long.
type Config struct {
	// Scenarios are patterns, as of [path.Match], of the names of cases or of their
	// beginnings: "warm", "warm/transport=http-*", "warm/*/callers=64". None is all.
	Scenarios []string
	// How are patterns of the contenders to measure, such as "client*". None is all.
	// Ratios are known only where the baseline is measured as well.
	How []string
	// Rounds is how often each contender has its turn. Defaults to 15.
	Rounds int
	// RoundTime is about how long a turn takes. Defaults to 200 ms.
	RoundTime time.Duration
	// Quick makes everything small: it shows that the suite works, no more.
	Quick bool
	// Child is the command of this program that calls [Serve]. The mode is
	// appended to it.
	Child []string
	// Others is the directory with the clients of other libraries, or empty.
	Others string
	// Log is told what is being measured; nil is nobody.
	Log io.Writer
}

func (c Config) withDefaults() Config {
	if c.Rounds <= 0 {
		c.Rounds = 15
		if c.Quick {
			c.Rounds = 2
		}
	}
	if c.RoundTime <= 0 {
		c.RoundTime = 200 * time.Millisecond
		if c.Quick {
			c.RoundTime = 5 * time.Millisecond
		}
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	return c
}

// wants reports whether a case was asked for, and leaves it those of its contenders
// that were.
func (c Config) wants(of *Case) (bool, error) {
	parts := strings.Split(of.String(), "/")
	wanted, err := like(c.Scenarios, func(pattern string) string {
		return strings.Join(parts[:min(len(parts), 1+strings.Count(pattern, "/"))], "/")
	})
	if !wanted || err != nil {
		return false, err
	}
	all := of.contenders
	of.contenders = nil
	for _, one := range all {
		wanted, err := like(c.How, func(string) string { return one.name })
		if err != nil {
			return false, err
		}
		if wanted {
			of.contenders = append(of.contenders, one)
		}
	}
	return len(of.contenders) > 0, nil
}

// like reports whether one of the patterns is that of a name, or there are none. The
// name may depend on the pattern.
func like(patterns []string, name func(pattern string) string) (bool, error) {
	for _, pattern := range patterns {
		ok, err := path.Match(pattern, name(pattern))
		if err != nil {
			return false, fmt.Errorf("bench: pattern %q: %w", pattern, err)
		}
		if ok {
			return true, nil
		}
	}
	return len(patterns) == 0, nil
}

// Run measures. A contender that fails is in the report with its error, and Run
// returns it as well, after the others. When ctx ends, the report has the cases that
// were done.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	p, err := newPlace(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer p.close()
	report := newReport(cfg)
	var errs []error
	for _, c := range p.cases() {
		wanted, err := cfg.wants(c)
		if err != nil {
			return nil, err
		}
		if !wanted {
			continue
		}
		began := time.Now()
		fmt.Fprintf(cfg.Log, "%s ...", c)
		result, err := runCase(ctx, cfg, c)
		fmt.Fprintf(cfg.Log, " %v\n", time.Since(began).Round(10*time.Millisecond))
		if err != nil {
			fmt.Fprintf(cfg.Log, "%v\n", err)
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			return report, context.Cause(ctx)
		}
		report.Cases = append(report.Cases, result)
	}
	if len(report.Cases) == 0 {
		return nil, fmt.Errorf("bench: no case is named like %q, or none of its contenders like %q", cfg.Scenarios, cfg.How)
	}
	return report, errors.Join(errs...)
}

// roundTime is about how long a round takes.
func (c *Case) roundTime(cfg Config) time.Duration {
	if cfg.Quick {
		return cfg.RoundTime
	}
	return cfg.RoundTime * time.Duration(max(1, c.Longer))
}

// turn is a contender in its rounds.
type turn struct {
	*running
	result *Result
	ops    int
}

// runCase lets the contenders take turns.
func runCase(ctx context.Context, cfg Config, c *Case) (result CaseResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, caseLimit)
	defer cancel()
	result = CaseResult{Name: c.String(), Scenario: c.Scenario, Params: c.Params, About: c.About, Baseline: c.Baseline, Unit: c.unit()}
	result.Contenders = make([]Result, len(c.contenders))
	var turns []*turn
	defer func() {
		for _, t := range turns {
			err = errors.Join(err, t.close())
		}
	}()
	fail := func(r *Result, failure error) {
		r.Skipped = failure.Error()
		if !errors.Is(failure, errNotThere) {
			err = errors.Join(err, fmt.Errorf("bench: %s/how=%s: %w", c, r.Name, failure))
		}
	}
	for i, one := range c.contenders {
		r := &result.Contenders[i]
		r.Name = one.name
		ready, failure := one.start(ctx)
		if failure != nil {
			fail(r, failure)
			continue
		}
		t := &turn{running: ready, result: r, ops: c.Ops}
		turns = append(turns, t)
		if c.Cold {
			continue
		}
		if failure := t.calibrate(ctx, cfg, c.roundTime(cfg)); failure != nil {
			fail(r, failure)
		}
	}
	rounds := cfg.Rounds
	if c.Rounds > 0 {
		rounds = min(rounds, c.Rounds)
	}
	for round := range rounds {
		for i := range turns {
			t := turns[(i+round)%len(turns)]
			if t.result.Skipped != "" {
				continue
			}
			s, failure := t.round(ctx, t.ops)
			if failure != nil {
				fail(t.result, failure)
				continue
			}
			t.result.Rounds = append(t.result.Rounds, s.rounded())
		}
	}
	result.summarize()
	return result, err
}

// calibrate warms a contender up, and finds out how many operations a round takes.
func (t *turn) calibrate(ctx context.Context, cfg Config, roundTime time.Duration) error {
	fixed := t.ops > 0
	if !fixed {
		t.ops = t.callers
	}
	for range 2 {
		began := time.Now()
		s, err := t.round(ctx, t.ops)
		if err != nil || fixed {
			return err
		}
		perOp := s[NsPerOp]
		if perOp <= 0 {
			perOp = float64(time.Since(began)) / float64(t.ops)
		}
		t.ops = min(maxOps, max(2*t.callers, int(float64(roundTime)/max(1, perOp))))
		if cfg.Quick {
			return nil
		}
	}
	return nil
}
