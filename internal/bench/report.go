package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Schema is the version of the form of a [Report].
const Schema = 1

// Report is what a run has measured.
type Report struct {
	Schema     int               `json:"schema"`
	Date       time.Time         `json:"date"`
	Quick      bool              `json:"quick,omitempty"`
	Rounds     int               `json:"rounds"`
	Go         string            `json:"go"`
	OS         string            `json:"os"`
	Arch       string            `json:"arch"`
	CPU        string            `json:"cpu"`
	CPUs       int               `json:"cpus"`
	GOMAXPROCS int               `json:"gomaxprocs"`
	Modules    map[string]string `json:"modules"` // path to version
	Cases      []CaseResult      `json:"cases"`
}

// CaseResult is what the contenders of a [Case] came to.
type CaseResult struct {
	Name       string   `json:"name"`
	Scenario   string   `json:"scenario"`
	Params     []Param  `json:"params,omitempty"`
	About      string   `json:"about"`
	Baseline   string   `json:"baseline"`
	Unit       string   `json:"unit"` // of the value that counts
	Contenders []Result `json:"contenders"`
}

// Result is what one contender came to.
type Result struct {
	Name string `json:"name"`
	// Skipped says why it has no rounds, or not all.
	Skipped string `json:"skipped,omitempty"`
	// Rounds are in the order of time. Those of one number ran side by side.
	Rounds []Sample `json:"rounds,omitempty"`
	// Median is that of each unit, over the rounds.
	Median Sample `json:"median,omitempty"`
	// P10 and P90 are of the value that counts, over the rounds.
	P10 float64 `json:"p10,omitempty"`
	P90 float64 `json:"p90,omitempty"`
	// Ratio is the median over the rounds of the value that counts, divided by
	// that of the baseline in the same round. 0 is unknown.
	Ratio float64 `json:"ratio,omitempty"`
}

// newReport says where and with what it is measured.
func newReport(cfg Config) *Report {
	r := &Report{
		Schema: Schema, Date: time.Now().UTC().Truncate(time.Second), Quick: cfg.Quick, Rounds: cfg.Rounds,
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		CPU: cpuModel(), CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0), Modules: map[string]string{},
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			switch dep.Path {
			case "github.com/modelcontextprotocol/go-sdk", "github.com/asynkron/protoactor-go", "golang.org/x/sync":
				r.Modules[dep.Path] = dep.Version
			}
		}
	}
	return r
}

// cpuModel returns the name of the processor, where the system has a file with it.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "model name"); ok {
			return strings.TrimLeft(name, "\t :")
		}
	}
	return runtime.GOARCH
}

// summarize fills in what follows from the rounds.
func (c *CaseResult) summarize() {
	for i := range c.Contenders {
		r := &c.Contenders[i]
		if len(r.Rounds) == 0 {
			continue
		}
		r.Median = Sample{}
		for unit := range r.Rounds[0] {
			r.Median[unit] = median(r.values(unit))
		}
		r.Median.density()
		sorted := r.values(c.Unit)
		slices.Sort(sorted)
		r.P10, r.P90 = quantile(sorted, 0.1), quantile(sorted, 0.9)
		r.Ratio = c.Ratio(r.Name, c.Baseline, c.Unit)
	}
}

// values returns the values of a unit, in the order of the rounds.
func (r *Result) values(unit string) (all []float64) {
	for _, s := range r.Rounds {
		all = append(all, s[unit])
	}
	return all
}

// Contender returns the result with a name, or nil.
func (c *CaseResult) Contender(name string) *Result {
	for i := range c.Contenders {
		if c.Contenders[i].Name == name {
			return &c.Contenders[i]
		}
	}
	return nil
}

// Ratio returns the median over the rounds of one contender's value by another's in
// the same round, or 0 when it is not known.
func (c *CaseResult) Ratio(of, by, unit string) float64 {
	if ratios := c.ratios(of, by, unit); len(ratios) > 0 {
		return median(ratios)
	}
	return 0
}

// ratios returns those of all rounds.
func (c *CaseResult) ratios(of, by, unit string) (all []float64) {
	one, two := c.Contender(of), c.Contender(by)
	if one == nil || two == nil || one.Skipped != "" || two.Skipped != "" {
		return nil
	}
	for i := range min(len(one.Rounds), len(two.Rounds)) {
		if v := two.Rounds[i][unit]; v > 0 {
			all = append(all, one.Rounds[i][unit]/v)
		}
	}
	return all
}

// WriteJSON writes the report, without spaces: it is long.
func (r *Report) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// Read reads a report that WriteJSON has written.
func Read(file string) (*Report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	r := new(Report)
	switch err := json.Unmarshal(data, r); {
	case err != nil:
		return nil, fmt.Errorf("bench: %s: %w", file, err)
	case r.Schema != Schema:
		return nil, fmt.Errorf("bench: %s: schema %d is not %d: measure again", file, r.Schema, Schema)
	}
	return r, nil
}
