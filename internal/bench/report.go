package bench

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
)

// Report is a list of results in the format of Go's benchmarks, one for each round of
// each contender.
type Report struct {
	results []*benchfmt.Result
	cases   []*caseResult
}

// caseResult is what the contenders of a case have measured.
type caseResult struct {
	scenario
	name       string
	contenders []string
	// values are in the order of the rounds.
	values map[series][]float64
	// dates say when a unit was measured.
	dates map[string]string
}

// series names the values of a contender.
type series struct{ how, unit string }

// The keys of a result's configuration that the documents name.
const (
	keyDate   = "date"
	keyCommit = "commit"
	keyQuick  = "quick"
)

// machineConfig says where, when and with what a run measures.
func machineConfig(cfg Config) (all []benchfmt.Config) {
	add := func(key, value string) {
		all = append(all, benchfmt.Config{Key: key, Value: []byte(value), File: true})
	}
	add("goos", runtime.GOOS)
	add("goarch", runtime.GOARCH)
	add("pkg", "github.com/mcpactor/mcpactor/internal/bench")
	add("cpu", cpuModel())
	add("cpus", fmt.Sprint(runtime.NumCPU()))
	add("go", runtime.Version())
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if name := path.Base(dep.Path); name == "go-sdk" || name == "protoactor-go" {
				add(name, dep.Version)
			}
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				add(keyCommit, s.Value[:min(7, len(s.Value))])
			}
		}
	}
	add(keyDate, time.Now().UTC().Format(time.DateOnly))
	if cfg.Quick {
		add(keyQuick, "true")
	}
	return all
}

// cpuModel returns the name of the processor, where the system has a file with it.
func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	_, after, _ := strings.Cut(string(text), "model name\t: ")
	name, _, _ := strings.Cut(after, "\n")
	return cmp.Or(name, runtime.GOARCH)
}

// add adds the sample of a round of n operations.
func (r *Report) add(machine []benchfmt.Config, name, how string, n int, s sample) {
	res := &benchfmt.Result{
		Config: machine, Iters: n,
		Name: benchfmt.Name(fmt.Sprintf("%s%s/how=%s-%d", strings.ToUpper(name[:1]), name[1:], how, runtime.GOMAXPROCS(0))),
	}
	for _, unit := range slices.Sorted(maps.Keys(s)) {
		res.Values = append(res.Values, benchfmt.Value{Value: fiveDigits(s[unit]), Unit: unit})
	}
	r.index(res) //nolint:errcheck // the name is that of a case
}

// index adds a result.
func (r *Report) index(res *benchfmt.Result) error {
	name, how, ok := strings.Cut(string(res.Name), "/how=")
	if !ok {
		return fmt.Errorf("bench: result %s has no contender", res.Name)
	}
	name = strings.ToLower(name[:1]) + name[1:]
	how = how[:max(0, strings.LastIndexByte(how, '-'))] // GOMAXPROCS
	c := r.find(name)
	if c == nil {
		s, ok := scenarioOf(name)
		if !ok {
			return fmt.Errorf("bench: result %s is of no scenario", res.Name)
		}
		c = &caseResult{scenario: s, name: name, values: map[series][]float64{}, dates: map[string]string{}}
		r.cases = append(r.cases, c)
	}
	if !slices.Contains(c.contenders, how) {
		c.contenders = append(c.contenders, how)
	}
	for _, v := range res.Values {
		if v.OrigUnit != "" {
			v.Value, v.Unit = v.OrigValue, v.OrigUnit
		}
		of := series{how, v.Unit}
		c.values[of] = append(c.values[of], v.Value)
		c.dates[v.Unit] = res.GetConfig(keyDate)
	}
	r.results = append(r.results, res)
	return nil
}

// find returns the case with a name, or nil.
func (r *Report) find(name string) *caseResult {
	if i := slices.IndexFunc(r.cases, func(c *caseResult) bool { return c.name == name }); i >= 0 {
		return r.cases[i]
	}
	return nil
}

// matching returns the cases that match a pattern.
func (r *Report) matching(pattern string) (all []*caseResult) {
	for _, c := range r.cases {
		if matchesAny([]string{pattern}, c.name) {
			all = append(all, c)
		}
	}
	return all
}

// Write writes the report in the format of Go's benchmarks.
func (r *Report) Write(w io.Writer) error {
	out := benchfmt.NewWriter(w)
	for _, res := range r.results {
		if err := out.Write(res); err != nil {
			return fmt.Errorf("bench: %w", err)
		}
	}
	return nil
}

// Read reads a report that [Report.Write] has written.
func Read(file string) (*Report, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer f.Close()
	r := new(Report)
	in := benchfmt.NewReader(f, file)
	for in.Scan() {
		switch record := in.Result().(type) {
		case *benchfmt.Result:
			if err := r.index(record.Clone()); err != nil {
				return nil, err
			}
		case *benchfmt.SyntaxError:
			return nil, fmt.Errorf("bench: %w", record)
		}
	}
	if len(r.cases) == 0 {
		return nil, errors.Join(fmt.Errorf("bench: %s has no results of benchmarks", file), in.Err())
	}
	return r, in.Err()
}

// ratios returns the values of one contender divided by those of another in the same
// rounds. A round in which the other value is lost in the noise has no ratio.
func (c *caseResult) ratios(of, by, unit string) (all []float64) {
	one, two := c.values[series{of, unit}], c.values[series{by, unit}]
	for i := range min(len(one), len(two)) {
		if two[i] > 0 {
			all = append(all, one[i]/two[i])
		}
	}
	return all
}

// differences returns what one contender has more than another in the same rounds.
func (c *caseResult) differences(of, by, unit string) (all []float64) {
	one, two := c.values[series{of, unit}], c.values[series{by, unit}]
	for i := range min(len(one), len(two)) {
		all = append(all, one[i]-two[i])
	}
	return all
}

// timeUnit returns the unit in which times are compared. With one caller that is the
// median latency, which ignores rare disturbances of the machine.
func (c *caseResult) timeUnit() string {
	if strings.HasSuffix(c.name, "/callers=1") || c.scenario.name == "recovery" {
		return p50
	}
	return c.unit
}
