package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// client sends one signal to a collector. What the collector does not take is dropped: the next metrics contain the last ones.
type client struct {
	url     string
	headers map[string]string
	http    *http.Client
}

var (
	_ otlptrace.Client   = (*client)(nil)
	_ sdkmetric.Exporter = (*client)(nil)
)

// clientOf returns the client for a signal, or nil if it is not sent.
func clientOf(signal string) (*client, error) {
	endpoint, err := endpointOf(signal)
	if err != nil || endpoint == "" {
		return nil, err
	}
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT: is no URL: write it as in http://localhost:4318")
	}
	milliseconds, err := strconv.ParseUint(setting(signal, "TIMEOUT"), 10, 31)
	if err != nil {
		milliseconds = 10_000
	}
	headers, err := headersOf(setting(signal, "HEADERS"))
	if err != nil {
		return nil, err
	}
	return &client{url: endpoint, headers: headers, http: &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // which would get the headers
		Timeout:       time.Duration(milliseconds) * time.Millisecond,
	}}, nil
}

// headersOf returns the headers in a list such as "authorization=Bearer%20secret,tenant=one".
func headersOf(list string) (map[string]string, error) {
	headers := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, hasValue := strings.Cut(pair, "=")
		value, err := url.PathUnescape(value)
		if !hasValue || err != nil {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: is malformed: write name=value, with commas in between")
		}
		headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return headers, nil
}

// post sends a message.
func (c *client) post(ctx context.Context, message proto.Message) error {
	body, err := proto.Marshal(message)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range c.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := c.http.Do(r)
	if failed, is := errors.AsType[*url.Error](err); is {
		err = failed.Err // without the URL, which may have a secret
	}
	if err != nil {
		return fmt.Errorf("the collector cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	io.CopyN(io.Discard, resp.Body, 1<<16) //nolint:errcheck // so that the connection is used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the collector has answered %s", resp.Status)
	}
	return nil
}

// Start does nothing: the first spans open the connection.
func (*client) Start(context.Context) error { return nil }

// Stop closes the connections.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans. An ExportTraceServiceRequest, which a collector expects, has the same bytes.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	return c.post(ctx, &tracepb.TracesData{ResourceSpans: spans})
}

// Temporality is cumulative.
func (*client) Temporality(kind sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.DefaultTemporalitySelector(kind)
}

// Aggregation is the default.
func (*client) Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(kind)
}

// Export sends metrics.
func (c *client) Export(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	return c.post(ctx, messageOf(metrics))
}

// ForceFlush does nothing: Export has sent all.
func (*client) ForceFlush(context.Context) error { return nil }

// Shutdown closes the connections.
func (c *client) Shutdown(ctx context.Context) error { return c.Stop(ctx) }
