package engine

import (
	"context"

	"retort/internal/audit"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/pipeline"
	"retort/internal/privacy/redact"
	"retort/internal/workspace"
)

// dataAssembly holds the stores for data that remains after executions: the audit log, personal values and
// workspaces.
type dataAssembly struct {
	closeStack
	audit      *audit.Log      // nil if the audit log is disabled
	monitor    *anomalyMonitor // nil without an audit log
	totals     *totalsCache
	redactor   *redact.Redactor // nil if personal values are not hidden
	limits     core.Limits      // of one execution
	workspaces *workspace.WorkspaceStore
	states     *workspace.StateStore
}

// newDataAssembly opens the audit log and the store of personal values.
func newDataAssembly(ctx context.Context, c *configuration, totals *totalsCache) (*dataAssembly, error) {
	var opened closeStack
	trail, err := openAuditTrail(ctx, c)
	if err != nil {
		return nil, err
	}
	opened.push(trail.Close)
	redactor, closeRedactor := c.OpenRedactor(func() config.Settings { return c.activeConfig().config.Settings })
	opened.push(closeRedactor)
	limits := c.source.Limits.WithDefaults(c.config.Settings.ExecutionLimits())
	workspaces, states := OpenWorkspaces(c.home, limits.Disk)
	return &dataAssembly{opened, trail.log, trail.monitor, totals, redactor, limits, workspaces, states}, nil
}

// recorder returns the audit log as an interface. Without an audit log, the interface itself is nil.
func (d *dataAssembly) recorder() core.EventRecorder {
	if d.audit == nil {
		return nil
	}
	return d.audit
}

// anomalyWatch returns the anomaly monitor as an interface. Without an audit log, the interface itself is nil.
func (d *dataAssembly) anomalyWatch() pipeline.AnomalyWatch {
	if d.monitor == nil {
		return nil
	}
	return d.monitor
}

// recordEvent writes an event to the audit log, if there is one. A durable event is on disk when recordEvent returns.
func (d *dataAssembly) recordEvent(e core.AuditEvent, durable bool) *core.Error {
	if d.audit == nil {
		return nil
	}
	return d.audit.Record(e, durable)
}
