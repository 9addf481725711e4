package main

import (
	_ "github.com/prometheus/prometheus/promql/parser"
	_ "github.com/stretchr/testify/require"
	_ "go.opentelemetry.io/otel/sdk/metric/metricdata"
	_ "go.opentelemetry.io/otel/sdk/trace/tracetest"
)
