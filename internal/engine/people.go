package engine

import (
	"retort/internal/core"
	"retort/internal/pipeline"
	"retort/internal/telemetry"
)

// peopleAssembly connects executions with people: those who approve calls, those who log in at servers, and the
// operators who look at telemetry.
type peopleAssembly struct {
	closeStack
	approvals pipeline.ApprovalOptions
	telemetry *telemetry.Telemetry // nil if the settings name no collector
	logins    *loginPrompter
}

// newPeopleAssembly opens the approvals and telemetry, and starts watching for logins. The telemetry reads the
// number of jobs from queue.
func newPeopleAssembly(c *configuration, data *dataAssembly, tools *toolAssembly, queue *openedQueue) (_ *peopleAssembly, err error) {
	var opened closeStack
	defer opened.closeOnError(&err)
	approvals, closeApprovals, err := openApprovals(c, data, tools.catalog)
	if err != nil {
		return nil, err
	}
	opened.push(closeApprovals)
	collectors, err := openTelemetry(c, data, tools, queue)
	if err != nil {
		return nil, err
	}
	if collectors != nil {
		opened.push(collectors.Close)
	}
	logins := newLoginPrompter(c, data, tools.live, approvals.Table)
	opened.push(logins.Close)
	return &peopleAssembly{opened, approvals, collectors, logins}, nil
}

// tracer returns the telemetry as an interface. If no collector is configured, the interface itself is nil.
func (p *peopleAssembly) tracer() core.Tracer {
	if p.telemetry == nil {
		return nil
	}
	return p.telemetry
}
