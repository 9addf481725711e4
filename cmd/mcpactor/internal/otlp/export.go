// Package otlp sends traces and metrics to a collector by OTLP over HTTP, as the environment variables of OpenTelemetry say.
//
// It has the part of the exporters of OpenTelemetry, otlptracehttp and otlpmetrichttp, that sends messages, because these link gRPC,
// which no message is sent by: 2.4 MB more, and each start takes a tenth longer.
package otlp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/mcpactor/mcpactor/supervisor/telemetry"
)

// flushTime bounds the time in which the last spans and metrics are sent.
const flushTime = 500 * time.Millisecond

// Export sends the traces and the metrics of a program. The zero value, and nil, send nothing.
type Export struct {
	traces  *sdktrace.TracerProvider // nil: none are sent
	metrics *sdkmetric.MeterProvider // likewise
}

// Start starts what the environment asks for: nothing, unless it names an endpoint. It does not connect. What goes wrong later is
// logged, every ten minutes at most.
func Start(log zerolog.Logger) (*Export, error) {
	traces, err1 := clientOf("TRACES")
	metrics, err2 := clientOf("METRICS")
	e := &Export{}
	if err := errors.Join(err1, err2); err != nil || traces == nil && metrics == nil {
		return e, err
	}
	seldom := log.Sample(&zerolog.BurstSampler{Burst: 1, Period: 10 * time.Minute})
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { seldom.Warn().Err(err).Msg("telemetry was not sent") }))
	of, err := resource.New(context.Background(), resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "mcpactor"), attribute.String("service.instance.id", rand.Text())),
		resource.WithFromEnv())
	if err != nil {
		return e, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if traces != nil {
		e.traces = sdktrace.NewTracerProvider(sdktrace.WithBatcher(otlptrace.NewUnstarted(traces)), sdktrace.WithResource(of))
	}
	if metrics != nil {
		e.metrics = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics)), sdkmetric.WithResource(of))
	}
	return e, nil
}

// Providers returns where a supervisor sends its traces and metrics.
func (e *Export) Providers() (to telemetry.Config) {
	if e == nil {
		return to
	}
	if e.traces != nil {
		to.TracerProvider = e.traces
	}
	if e.metrics != nil {
		to.MeterProvider = e.metrics
	}
	return to
}

// Stop sends what is left, for a moment at most.
func (e *Export) Stop() {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	var all sync.WaitGroup
	shutdown := func(of func(context.Context) error) {
		if err := of(ctx); err != nil {
			otel.Handle(err)
		}
	}
	if e.traces != nil {
		all.Go(func() { shutdown(e.traces.Shutdown) })
	}
	if e.metrics != nil {
		all.Go(func() { shutdown(e.metrics.Shutdown) })
	}
	all.Wait()
}

// setting returns the value of a variable, that of the signal first.
func setting(signal, name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// endpointOf returns the URL to which a signal is sent, or nothing if it is not.
func endpointOf(signal string) (string, error) {
	exporter := os.Getenv("OTEL_" + signal + "_EXPORTER")
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || exporter == "none" {
		return "", nil
	}
	endpoint := os.Getenv("OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT")
	if endpoint == "" {
		if endpoint = os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); endpoint == "" {
			return "", nil
		}
		endpoint = strings.TrimSuffix(endpoint, "/") + "/v1/" + strings.ToLower(signal)
	}
	switch protocol := setting(signal, "PROTOCOL"); {
	case exporter != "" && exporter != "otlp":
		return "", fmt.Errorf("OTEL_%s_EXPORTER: there is no exporter %q: use otlp or none", signal, exporter)
	case protocol != "" && protocol != "http/protobuf":
		return "", fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %s is not spoken: use http/protobuf", protocol)
	}
	return endpoint, nil
}
