package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// others returns contenders that call the server at url with clients of other
// libraries. Each is a process of its own: see the directory others.
func (p *setup) others(url string, callers int) (all []contender) {
	in := func(names ...string) string { return filepath.Join(append([]string{p.cfg.Others}, names...)...) }
	for _, o := range []struct {
		name string
		// installed is a file that exists when the client is installed.
		installed string
		command   []string
	}{
		{"mcp-go", in("bin", "mcpgo"), []string{in("bin", "mcpgo"), url}},
		{"node", in("node", "node_modules", ".package-lock.json"), []string{"node", "--no-warnings", in("node", "client.mjs"), url}},
	} {
		all = append(all, contender{o.name, func(context.Context) (*running, error) {
			if _, err := os.Stat(o.installed); p.cfg.Others == "" || err != nil {
				return nil, errNotInstalled
			}
			c, err := startProcess(o.command...)
			if err != nil {
				return nil, err
			}
			return &running{close: c.close, round: func(ctx context.Context, n int) (sample, error) {
				if _, err := c.makeCalls(ctx, callers, callers); err != nil { // warm up, as inParallel does
					return nil, err
				}
				return c.makeCalls(ctx, n, callers)
			}}, nil
		}})
	}
	return all
}

// makeCalls has the process make n calls, and returns their times.
func (p *process) makeCalls(ctx context.Context, n, callers int) (sample, error) {
	answer, err := p.ask(ctx, fmt.Sprintf(`{"calls":%d,"callers":%d}`, n, callers))
	if err != nil {
		return nil, err
	}
	var took struct {
		NS  float64 // all calls together
		P50 float64
	}
	if err := json.Unmarshal([]byte(answer), &took); err != nil {
		return nil, fmt.Errorf("bench: %s: answer %q: %w", p.cmd.Path, answer, err)
	}
	return sample{nsPerOp: took.NS / float64(n), p50: took.P50}, nil
}
