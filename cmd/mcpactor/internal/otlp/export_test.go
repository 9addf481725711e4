package otlp

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "OTEL_") {
			os.Unsetenv(name)
		}
	}
	goleak.VerifyTestMain(m)
}

// collector keeps what it is sent.
type collector struct {
	*httptest.Server

	mu      sync.Mutex
	bodies  map[string][]byte // by path
	headers http.Header       // of the last request
}

func newCollector(t *testing.T) *collector {
	c := &collector{bodies: map[string][]byte{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil {
			c.bodies[r.URL.Path], c.headers = body, r.Header
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// record makes a span and a metric of each kind.
func record(t *testing.T, e *Export) {
	to := e.Providers()
	_, span := to.TracerProvider.Tracer("tests").Start(t.Context(), "tools/call search")
	span.End()
	meter := to.MeterProvider.Meter("tests")
	calls, err := meter.Int64Counter("calls", metric.WithUnit("{call}"))
	require.NoError(t, err)
	calls.Add(t.Context(), 3, metric.WithAttributes(attribute.String("server", "one"), attribute.Int("port", 80)))
	open, err := meter.Int64UpDownCounter("open")
	require.NoError(t, err)
	open.Add(t.Context(), -2)
	up, err := meter.Int64Gauge("up")
	require.NoError(t, err)
	up.Record(t.Context(), 1)
	lease, err := meter.Float64Gauge("lease")
	require.NoError(t, err)
	lease.Record(t.Context(), 0.5)
	durations, err := meter.Float64Histogram("durations", metric.WithExplicitBucketBoundaries(1, 10))
	require.NoError(t, err)
	durations.Record(t.Context(), 4)
	durations.Record(t.Context(), 40)
}

func TestTracesAndMetricsAreSentAtTheEnd(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL+"/base/")
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", c.URL+"/metrics")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20secret, tenant = one")
	t.Setenv("OTEL_SERVICE_NAME", "gateway")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "room=cellar")
	var log bytes.Buffer
	e, err := Start(zerolog.New(&log))
	require.NoError(t, err)
	record(t, e)
	e.Stop()
	require.Empty(t, log.String())

	require.Equal(t, "Bearer secret", c.headers.Get("Authorization"))
	require.Equal(t, "one", c.headers.Get("Tenant"))
	require.Equal(t, "application/x-protobuf", c.headers.Get("Content-Type"))
	var traces tracepb.TracesData
	require.NoError(t, proto.Unmarshal(c.bodies["/base/v1/traces"], &traces))
	require.Equal(t, "tools/call search", traces.ResourceSpans[0].ScopeSpans[0].Spans[0].Name)
	var metrics metricspb.MetricsData
	require.NoError(t, proto.Unmarshal(c.bodies["/metrics"], &metrics))
	require.Len(t, metrics.ResourceMetrics, 1)
	of := map[string]string{}
	for _, a := range metrics.ResourceMetrics[0].Resource.Attributes {
		of[a.Key] = a.Value.GetStringValue()
	}
	require.NotEmpty(t, of["service.instance.id"])
	require.Equal(t, "gateway", of["service.name"])
	require.Equal(t, "cellar", of["room"])

	all := map[string]*metricspb.Metric{}
	scope := metrics.ResourceMetrics[0].ScopeMetrics[0]
	require.Equal(t, "tests", scope.Scope.Name)
	for _, m := range scope.Metrics {
		all[m.Name] = m
	}
	require.Len(t, all, 5)
	calls := all["calls"].GetSum()
	require.Equal(t, "{call}", all["calls"].Unit)
	require.True(t, calls.IsMonotonic)
	require.Equal(t, cumulative, calls.AggregationTemporality)
	require.EqualValues(t, 3, calls.DataPoints[0].GetAsInt())
	require.WithinDuration(t, time.Now(), time.Unix(0, int64(calls.DataPoints[0].TimeUnixNano)), time.Minute)
	require.WithinDuration(t, time.Now(), time.Unix(0, int64(calls.DataPoints[0].StartTimeUnixNano)), time.Minute)
	require.Equal(t, "port", calls.DataPoints[0].Attributes[0].Key)
	require.EqualValues(t, 80, calls.DataPoints[0].Attributes[0].Value.GetIntValue())
	require.Equal(t, "one", calls.DataPoints[0].Attributes[1].Value.GetStringValue())
	require.False(t, all["open"].GetSum().IsMonotonic)
	require.EqualValues(t, -2, all["open"].GetSum().DataPoints[0].GetAsInt())
	require.EqualValues(t, 1, all["up"].GetGauge().DataPoints[0].GetAsInt())
	require.InDelta(t, 0.5, all["lease"].GetGauge().DataPoints[0].GetAsDouble(), 0)
	durations := all["durations"].GetHistogram()
	require.Equal(t, cumulative, durations.AggregationTemporality)
	require.EqualValues(t, 2, durations.DataPoints[0].Count)
	require.InDelta(t, 44, durations.DataPoints[0].GetSum(), 0)
	require.Equal(t, []float64{1, 10}, durations.DataPoints[0].ExplicitBounds)
	require.Equal(t, []uint64{0, 1, 1}, durations.DataPoints[0].BucketCounts)
}

func TestCollectorThatDoesNotAnswerDelaysTheEndByAMoment(t *testing.T) {
	free := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-free }))
	defer hangs.Close()
	defer close(free)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, url := range []string{hangs.URL, gone.URL + "/secret"} {
		var log bytes.Buffer
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
		e, err := Start(zerolog.New(&log))
		require.NoError(t, err)
		record(t, e)
		began := time.Now()
		e.Stop()
		require.Less(t, time.Since(began), 10*flushTime)
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), `"message":"telemetry was not sent"`)
		require.NotContains(t, log.String(), "secret")
	}
}

func TestHeadersDoNotFollowARedirect(t *testing.T) {
	c := newCollector(t)
	elsewhere := httptest.NewServer(http.RedirectHandler(c.URL, http.StatusTemporaryRedirect))
	defer elsewhere.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", elsewhere.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=secret")
	e, err := Start(zerolog.Nop())
	require.NoError(t, err)
	record(t, e)
	e.Stop()
	require.Empty(t, c.bodies)
}

func TestEnvironmentSaysWhatIsSentAndWhere(t *testing.T) {
	const at, own = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for name, c := range map[string]struct {
		variables       map[string]string
		traces, metrics string
		err             string
	}{
		"nothing":             {},
		"one for both":        {map[string]string{at: "http://127.0.0.1:1"}, "http://127.0.0.1:1/v1/traces", "http://127.0.0.1:1/v1/metrics", ""},
		"a path":              {map[string]string{at: "https://127.0.0.1:1/otlp/"}, "https://127.0.0.1:1/otlp/v1/traces", "https://127.0.0.1:1/otlp/v1/metrics", ""},
		"traces only":         {map[string]string{own: "http://127.0.0.1:1/here"}, "http://127.0.0.1:1/here", "", ""},
		"traces elsewhere":    {map[string]string{at: "http://127.0.0.1:1", own: "http://127.0.0.1:2"}, "http://127.0.0.1:2", "http://127.0.0.1:1/v1/metrics", ""},
		"switched off":        {map[string]string{at: "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "True"}, "", "", ""},
		"no metrics":          {map[string]string{at: "http://127.0.0.1:1", "OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "otlp"}, "http://127.0.0.1:1/v1/traces", "", ""},
		"off, and wrong":      {map[string]string{at: "localhost:1", "OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "", "", ""},
		"protocol for one":    {map[string]string{own: "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, "http://127.0.0.1:1", "", ""},
		"gRPC":                {map[string]string{at: "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "", "", "grpc is not spoken: use http/protobuf"},
		"another exporter":    {map[string]string{at: "http://127.0.0.1:1", "OTEL_METRICS_EXPORTER": "prometheus"}, "", "", `OTEL_METRICS_EXPORTER: there is no exporter "prometheus"`},
		"no URL":              {map[string]string{at: "localhost:4318"}, "", "", "OTEL_EXPORTER_OTLP_ENDPOINT: is no URL"},
		"headers without one": {map[string]string{at: "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS": "secret"}, "", "", "OTEL_EXPORTER_OTLP_HEADERS: is malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.variables {
				t.Setenv(variable, value)
			}
			e, err := Start(zerolog.Nop())
			defer e.Stop()
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.Zero(t, e.Providers())
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.traces != "", e.Providers().TracerProvider != nil)
			require.Equal(t, c.metrics != "", e.Providers().MeterProvider != nil)
			for signal, want := range map[string]string{"TRACES": c.traces, "METRICS": c.metrics} {
				got, err := endpointOf(signal)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
		})
	}
}
