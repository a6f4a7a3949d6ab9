package engine

import (
	"retort/internal/telemetry"
)

// openTelemetry starts to export traces and metrics of executions to the collectors in the settings. It returns
// nil if the settings name no collector.
func openTelemetry(c *configuration, data *dataAssembly, tools *toolAssembly, queue *openedQueue) (*telemetry.Telemetry, error) {
	s := c.config.Settings.Telemetry
	if s.Traces == "" && s.Metrics == "" && s.Prometheus.Address == "" {
		return nil, nil
	}
	o := telemetry.Options{
		Version: Version, Traces: s.Traces, Metrics: s.Metrics, Headers: s.Headers, Ratio: s.Ratio,
		Prometheus: s.Prometheus.Address, PrometheusToken: s.Prometheus.Token,
		Known: tools.hasTool, Mask: c.secrets.MaskString, Log: c.log,
	}
	o.Tasks = func() (queued, running int) {
		if n := queue.countJobs(""); n != nil {
			return n.Queued, n.Running + n.Pending
		}
		return 0, 0
	}
	if data.audit != nil {
		o.Record = data.audit.QueueLength
	}
	return telemetry.Open(o)
}
