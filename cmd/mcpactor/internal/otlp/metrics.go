package otlp

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
)

// messageOf returns the message for metrics of the kinds that package telemetry has. An ExportMetricsServiceRequest, which a collector
// expects, has the same bytes.
func messageOf(metrics *metricdata.ResourceMetrics) *metricspb.MetricsData {
	of := &metricspb.ResourceMetrics{Resource: &resourcepb.Resource{Attributes: attributesOf(metrics.Resource.Attributes())}, SchemaUrl: metrics.Resource.SchemaURL()}
	for _, scope := range metrics.ScopeMetrics {
		in := &metricspb.ScopeMetrics{Scope: &commonpb.InstrumentationScope{Name: scope.Scope.Name, Version: scope.Scope.Version}, SchemaUrl: scope.Scope.SchemaURL}
		for _, m := range scope.Metrics {
			metric := &metricspb.Metric{Name: m.Name, Description: m.Description, Unit: m.Unit}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				metric.Data = &metricspb.Metric_Sum{Sum: &metricspb.Sum{DataPoints: numbersOf(data.DataPoints), IsMonotonic: data.IsMonotonic, AggregationTemporality: cumulative}}
			case metricdata.Gauge[int64]:
				metric.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: numbersOf(data.DataPoints)}}
			case metricdata.Gauge[float64]:
				metric.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: numbersOf(data.DataPoints)}}
			case metricdata.Histogram[float64]:
				metric.Data = &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{DataPoints: bucketsOf(data.DataPoints), AggregationTemporality: cumulative}}
			default:
				continue
			}
			in.Metrics = append(in.Metrics, metric)
		}
		of.ScopeMetrics = append(of.ScopeMetrics, in)
	}
	return &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{of}}
}

const cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE

func numbersOf[N int64 | float64](points []metricdata.DataPoint[N]) (all []*metricspb.NumberDataPoint) {
	for _, p := range points {
		number := &metricspb.NumberDataPoint{Attributes: attributesOf(p.Attributes.ToSlice()), StartTimeUnixNano: nanoseconds(p.StartTime), TimeUnixNano: nanoseconds(p.Time)}
		switch value := any(p.Value).(type) {
		case int64:
			number.Value = &metricspb.NumberDataPoint_AsInt{AsInt: value}
		case float64:
			number.Value = &metricspb.NumberDataPoint_AsDouble{AsDouble: value}
		}
		all = append(all, number)
	}
	return all
}

func bucketsOf(points []metricdata.HistogramDataPoint[float64]) (all []*metricspb.HistogramDataPoint) {
	for _, p := range points {
		all = append(all, &metricspb.HistogramDataPoint{
			Attributes: attributesOf(p.Attributes.ToSlice()), StartTimeUnixNano: nanoseconds(p.StartTime), TimeUnixNano: nanoseconds(p.Time),
			Count: p.Count, Sum: &p.Sum, ExplicitBounds: p.Bounds, BucketCounts: p.BucketCounts,
		})
	}
	return all
}

func nanoseconds(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixNano())
}

func attributesOf(attributes []attribute.KeyValue) (all []*commonpb.KeyValue) {
	for _, a := range attributes {
		value := &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: a.Value.String()}}
		if a.Value.Type() == attribute.INT64 {
			value.Value = &commonpb.AnyValue_IntValue{IntValue: a.Value.AsInt64()}
		}
		all = append(all, &commonpb.KeyValue{Key: string(a.Key), Value: value})
	}
	return all
}
