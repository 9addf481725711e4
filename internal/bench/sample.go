package bench

import (
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aclements/go-moremath/stats"
	"golang.org/x/perf/benchmath"
	"golang.org/x/sync/errgroup"
)

// The units of most samples. Go's benchmarks have the first three as well.
const (
	nsPerOp     = "ns/op"
	bytesPerOp  = "B/op"
	allocsPerOp = "allocs/op"
	cpuPerOp    = "cpu-ns/op" // of our process
	p50         = "p50-ns"    // median latency
)

// sample is the result of one round of one contender: a value for each unit.
type sample map[string]float64

// meter measures time and allocations.
type meter struct {
	began  time.Time
	cpu    time.Duration
	before runtime.MemStats
}

// startMeter collects garbage and starts to measure.
func startMeter() *meter {
	var m meter
	runtime.GC()
	runtime.ReadMemStats(&m.before)
	m.cpu, m.began = cpuTime(), time.Now()
	return &m
}

// stop returns the sample of operations with these latencies, in nanoseconds.
func (m *meter) stop(latencies []float64) sample {
	elapsed, cpu := time.Since(m.began), cpuTime()-m.cpu
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	n := float64(len(latencies))
	return sample{
		nsPerOp:     float64(elapsed) / n,
		cpuPerOp:    float64(cpu) / n,
		allocsPerOp: float64(after.Mallocs-m.before.Mallocs) / n,
		bytesPerOp:  float64(after.TotalAlloc-m.before.TotalAlloc) / n,
		p50:         stats.Sample{Xs: latencies}.Quantile(0.5),
	}
}

// concurrently runs call n times from several goroutines, with the number of the run.
// After an error it starts no more runs.
func concurrently(goroutines, n int, call func(i int) error) error {
	var next atomic.Int64
	var group errgroup.Group
	for range goroutines {
		group.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := call(i); err != nil {
					next.Store(int64(n))
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// inParallel measures n calls from several goroutines, after a call from each that is
// not measured.
func inParallel(goroutines, n int, call func(i int) error) (sample, error) {
	if err := concurrently(goroutines, goroutines, call); err != nil {
		return nil, err
	}
	latencies := make([]float64, n)
	m := startMeter()
	err := concurrently(goroutines, n, func(i int) error {
		began := time.Now()
		err := call(i)
		latencies[i] = float64(time.Since(began))
		return err
	})
	return m.stop(latencies), err
}

// oneByOne measures n operations, one after the other. An operation returns how long
// the part took that counts as its time.
func oneByOne(n int, operation func() (time.Duration, error)) (sample, error) {
	latencies := make([]float64, n)
	m := startMeter()
	for i := range latencies {
		took, err := operation()
		if err != nil {
			return nil, err
		}
		latencies[i] = float64(took)
	}
	s := m.stop(latencies)
	s[nsPerOp] = stats.Mean(latencies)
	return s, nil
}

// fiveDigits rounds a value, for the report.
func fiveDigits(value float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 5, 64), 64)
	return rounded
}

// spread is the median of values and their interquartile range.
type spread struct{ median, low, high float64 }

func spreadOf(values []float64) spread {
	s := benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	sorted := stats.Sample{Xs: s.Values, Sorted: true}
	return spread{benchmath.AssumeNothing.Summary(s, 0.95).Center, sorted.Quantile(0.25), sorted.Quantile(0.75)}
}

func median(values []float64) float64 { return spreadOf(values).median }
