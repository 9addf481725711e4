package bench

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The units of a [Sample] that most contenders report. They are those of Go's
// benchmarks, so that benchstat knows them.
const (
	NsPerOp     = "ns/op"
	BytesPerOp  = "B/op"
	AllocsPerOp = "allocs/op"
	CPUPerOp    = "cpu-ns/op" // of our process
	P50         = "p50-ns"
	P99         = "p99-ns"
)

// Sample is what one round of one contender came to: a value for each unit.
type Sample map[string]float64

// meter measures the time and the garbage of a piece of work.
type meter struct {
	began  time.Time
	cpu    time.Duration
	before runtime.MemStats
}

// start begins with an empty heap.
func (m *meter) start() {
	runtime.GC()
	runtime.ReadMemStats(&m.before)
	m.cpu, m.began = cpuTime(), time.Now()
}

// stop returns the sample of n operations.
func (m *meter) stop(n int) Sample {
	elapsed, cpu := time.Since(m.began), cpuTime()-m.cpu
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	per := 1 / float64(max(1, n))
	return Sample{
		NsPerOp:     float64(elapsed) * per,
		CPUPerOp:    float64(cpu) * per,
		AllocsPerOp: float64(after.Mallocs-m.before.Mallocs) * per,
		BytesPerOp:  float64(after.TotalAlloc-m.before.TotalAlloc) * per,
	}
}

// callers runs call n times from several goroutines, with the number of the call,
// and measures it. The first calls of each, which are not measured, warm it up.
func callers(goroutines, n int, call func(i int) error) (Sample, error) {
	each := func(n int, latencies []time.Duration) error {
		var next atomic.Int64
		var failed atomic.Pointer[error]
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for i := next.Add(1) - 1; i < int64(n) && failed.Load() == nil; i = next.Add(1) - 1 {
					began := time.Now()
					if err := call(int(i)); err != nil {
						failed.Store(&err)
						return
					}
					if latencies != nil {
						latencies[i] = time.Since(began)
					}
				}
			})
		}
		wg.Wait()
		if err := failed.Load(); err != nil {
			return *err
		}
		return nil
	}
	if err := each(goroutines, nil); err != nil {
		return nil, err
	}
	latencies := make([]time.Duration, n)
	var m meter
	m.start()
	if err := each(n, latencies); err != nil {
		return nil, err
	}
	s := m.stop(n)
	s.latencies(latencies)
	return s, nil
}

// latencies adds the percentiles of single operations.
func (s Sample) latencies(of []time.Duration) {
	slices.Sort(of)
	s[P50], s[P99] = float64(quantile(of, 0.5)), float64(quantile(of, 0.99))
}

// rounded returns the sample with five digits of each value.
func (s Sample) rounded() Sample {
	for unit, value := range s {
		if value != 0 {
			scale := math.Pow(10, 4-math.Floor(math.Log10(math.Abs(value))))
			s[unit] = math.Round(value*scale) / scale
		}
	}
	return s
}

// quantile returns a quantile of sorted values.
func quantile[T any](sorted []T, q float64) T {
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

// median returns the median of values, which it sorts.
func median(values []float64) float64 {
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[middle]
}
