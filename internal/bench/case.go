package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Case is one piece of work, with the ways to do it.
type Case struct {
	Scenario string
	// Params tell this case from others of its scenario.
	Params []Param
	// About says in half a sentence what an operation is.
	About string
	// Baseline is the name of the contender that ratios are taken of.
	Baseline string
	// Unit is that of the value that counts; empty is [NsPerOp].
	Unit string
	// Ops is how many operations make a round; 0 is as many as fit into its time.
	Ops int
	// Rounds bounds the rounds of a case that takes long; 0 is no bound.
	Rounds int
	// Cold is set for rounds that need no warming up.
	Cold bool
	// Longer is how many times longer than others its rounds are; 0 is no longer.
	Longer int

	contenders []contender
}

// Param is a dimension of a case, such as callers=64.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// String returns name and parameters, in the form of Go's benchmarks.
func (c *Case) String() string {
	var b strings.Builder
	b.WriteString(c.Scenario)
	for _, p := range c.Params {
		b.WriteString("/" + p.Name + "=" + p.Value)
	}
	return b.String()
}

// unit returns the unit of the value that counts.
func (c *Case) unit() string {
	if c.Unit == "" {
		return NsPerOp
	}
	return c.Unit
}

func params(nameValue ...any) (all []Param) {
	for i := 0; i < len(nameValue); i += 2 {
		all = append(all, Param{fmt.Sprint(nameValue[i]), fmt.Sprint(nameValue[i+1])})
	}
	return all
}

// contender is one way to do the work of a case.
type contender struct {
	name  string
	start func(ctx context.Context) (*running, error)
}

// errNotThere is why a contender is left out.
var errNotThere = errors.New("not there")

// running is a contender that is ready. All contenders of a case are at once.
type running struct {
	// callers is how many operations run at once, and so the least number of a round.
	callers int
	// round does n operations, and measures them.
	round func(ctx context.Context, n int) (Sample, error)
	close func() error
}

// warm returns a contender that makes the same call again and again.
func warm(callersAtOnce int, call func(ctx context.Context) error, close func() error) *running {
	return &running{
		callers: callersAtOnce, close: close,
		round: func(ctx context.Context, n int) (Sample, error) {
			return callers(callersAtOnce, n, func(int) error { return call(ctx) })
		},
	}
}
