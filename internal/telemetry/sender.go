package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"retort/internal/core"
)

const (
	sendTimeout     = 10 * time.Second // limit for sending one message to a collector
	maxTries        = 3                // maximum number of attempts to send a message after temporary errors
	firstRetryDelay = time.Second      // wait before the second attempt
)

// collectorSender sends messages to one collector.
type collectorSender struct {
	url     string
	headers map[string]string
	version string
	client  *http.Client
	log     *slog.Logger
	failing atomic.Bool
}

func newSender(o Options, address, path string) (*collectorSender, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, core.Errorf(
			core.KindInvalidArguments, "telemetry.open", "%.100q is not the address of a collector", address,
		).WithHint("write it in the form http://127.0.0.1:4318")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = path
	}
	if o.transport == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 1
		o.transport = transport
	}
	client := &http.Client{
		Transport: o.transport, Timeout: sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &collectorSender{
		url: u.String(), headers: maps.Clone(o.Headers), version: o.Version, client: client,
		log: o.Log.With("collector", u.Host+u.Path),
	}, nil
}

// sendSpans sends spans to the collector. After a temporary error it tries again a few times, unless last is set
// because Retort is shutting down.
func (s *collectorSender) sendSpans(ctx context.Context, last bool, spans []sdktrace.ReadOnlySpan) (err error) {
	message := encodeSpans(spans)
	wait := firstRetryDelay
	for try := 1; ; try++ {
		later := false
		if later, err = s.postOnce(ctx, message); err == nil || !later || last || try == maxTries {
			break
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		wait *= 2
	}
	s.logState(err)
	return err
}

// logState logs when a collector begins to fail, and when it works again.
func (s *collectorSender) logState(err error) {
	switch {
	case err != nil && !s.failing.Swap(true):
		s.log.Warn("the collector does not accept telemetry; it is dropped", "error", err)
	case err == nil && s.failing.Swap(false):
		s.log.Info("the collector accepts telemetry again")
	}
}

// postOnce sends a message to the collector once. The result later is true if sending the message again may succeed.
func (s *collectorSender) postOnce(ctx context.Context, message []byte) (later bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(message))
	if err != nil {
		return false, err
	}
	for name, value := range s.headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "retort/"+s.version)
	resp, err := s.client.Do(req)
	if err != nil {
		var where *url.Error
		if errors.As(err, &where) {
			err = where.Err // the address may have a password in it
		}
		return ctx.Err() == nil, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		later = true
	}
	return later, fmt.Errorf("the collector answers %d", resp.StatusCode)
}

// metricExporter sends metrics. Losing a message is harmless, because counts are cumulative: the next message
// contains them, too.
type metricExporter struct{ *collectorSender }

func (metricExporter) Temporality(sdkmetric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

func (metricExporter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

// Export implements sdkmetric.Exporter. It always returns nil, because the OpenTelemetry library would print an
// error.
func (e metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	_, err := e.postOnce(ctx, encodeMetrics(m))
	e.logState(err)
	return nil
}

func (metricExporter) ForceFlush(context.Context) error { return nil }

func (e metricExporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}
