package engine

import (
	"retort/internal/telemetry"
)

// observe sends traces and metrics of executions to the collectors in the settings, if there are any.
func (p *parts) observe() (err error) {
	s := p.config.Settings.Telemetry
	if s.Traces == "" && s.Metrics == "" && s.Prometheus == "" {
		return nil
	}
	o := telemetry.Options{
		Version: Version, Traces: s.Traces, Metrics: s.Metrics, Headers: s.Headers, Ratio: s.Ratio, Prometheus: s.Prometheus,
		Known: p.known, Mask: p.secrets.MaskString, Log: p.log,
	}
	o.Tasks = func() (queued, running int) {
		if c := p.line.counts(""); c != nil {
			return c.Queued, c.Running + c.Pending
		}
		return 0, 0
	}
	if p.audit != nil {
		o.Record = p.audit.QueueLength
	}
	if p.telemetry, err = telemetry.Open(o); err != nil {
		return err
	}
	p.onClose(p.telemetry.Close)
	return nil
}

// known reports whether a tool exists, including hidden ones and whoever may call it.
func (p *parts) known(server, tool string) bool {
	_, ok := p.catalog.Toolset().WithHidden().FindExact(server, tool)
	return ok
}
