// Package telemetrytest tests package telemetry with the SDK of OpenTelemetry, which the main
// module does not require.
package telemetrytest
