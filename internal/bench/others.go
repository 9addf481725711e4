package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// other is a client of another library. It is a process of its own: see
// bench/others. It reads the number of calls and of callers as a line of JSON, makes
// the calls, and writes how long that took.
type other struct {
	name string
	// needs is what is there when it is installed.
	needs   string
	command []string
}

// others returns the contenders of other libraries, for the server at url.
func (p *place) others(url string, callers int) (all []contender) {
	in := func(names ...string) string { return filepath.Join(append([]string{p.cfg.Others}, names...)...) }
	for _, o := range []other{
		{"mcp-go", in("bin", "mcpgo"), []string{in("bin", "mcpgo"), url}},
		{"node", in("node", "node_modules", ".package-lock.json"), []string{"node", in("node", "client.mjs"), url}},
	} {
		all = append(all, contender{o.name, func(context.Context) (*running, error) { return p.startOther(o, callers) }})
	}
	return all
}

// order is a line to such a process.
type order struct {
	Calls   int `json:"calls"`
	Callers int `json:"callers"`
}

// taken is a line from it, in nanoseconds.
type taken struct {
	NS    float64 `json:"ns"` // all calls together
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Error string  `json:"error"`
}

func (p *place) startOther(o other, callers int) (*running, error) {
	if _, err := os.Stat(o.needs); p.cfg.Others == "" || err != nil {
		return nil, errNotThere
	}
	c, err := startChild(o.command...)
	if err != nil {
		return nil, err
	}
	return &running{callers: callers, close: c.close, round: func(ctx context.Context, n int) (Sample, error) {
		if _, err := c.order(ctx, order{callers, callers}); err != nil { // as callers warms up
			return nil, err
		}
		t, err := c.order(ctx, order{n, callers})
		if err != nil {
			return nil, err
		}
		return Sample{NsPerOp: t.NS / float64(n), P50: t.P50, P99: t.P99}, nil
	}}, nil
}

// order has a process make calls.
func (c *child) order(ctx context.Context, o order) (t taken, err error) {
	line, err := json.Marshal(o)
	if err != nil {
		return t, err
	}
	answer, err := c.ask(ctx, string(line))
	if err != nil {
		return t, err
	}
	if err := json.Unmarshal([]byte(answer), &t); err != nil {
		return t, fmt.Errorf("bench: %s said %q: %w", c.cmd.Path, answer, err)
	}
	if t.Error != "" {
		return t, fmt.Errorf("bench: %s: %s", c.cmd.Path, t.Error)
	}
	return t, nil
}
