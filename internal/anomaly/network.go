package anomaly

import (
	"fmt"

	"retort/internal/core"
)

// onNetwork processes direct network access of a program. A refused access counts like a refused call. Data exchanged
// with a host counts like data exchanged with a server.
func (d *anomalyDetector) onNetwork(e core.AuditEvent) {
	host, _ := e.Facts["host"].(string)
	switch e.Status {
	case "refused":
		if kind := fmt.Sprint(e.Facts["error"]); kind == string(core.KindPolicy) {
			d.onDenial(e)
		}
		if listed, _ := e.Facts["blacklist"].(bool); listed {
			d.checkBlacklisted(d.personFor(e.Principal), e, host)
		}
	case "ended":
		p, x := d.personFor(e.Principal), d.executionFor(e.Execution)
		e.Server = host
		to, sent, got := d.flowFor(p, host), numberFrom(e.Facts["sent"]), float64(e.Bytes)
		d.checkLeak(p, e, x, to, sent)
		if all := x.sent[host] + sent; all >= largeArguments && to.writes >= d.o.Learning.Calls && to.sent.isOutlier(all) {
			d.checkVolume(p, e, &to.sent, all, "sent %s to")
		}
		if all := x.read[host] + got; all >= largeAnswer && to.writes >= d.o.Learning.Calls && to.read.isOutlier(all) {
			d.checkVolume(p, e, &to.read, all, "received %s from")
		}
		d.checkMovedBytes(p, e, x.sent[host]+sent+x.read[host]+got)
		x.addBytes(x.sent, host, sent)
		x.addBytes(x.read, host, got)
		to.writes++
	}
}

func (d *anomalyDetector) checkVolume(p *principalState, e core.AuditEvent, of *histogramSketch, bytes float64, did string) {
	d.addFinding(p, AnomalyFinding{
		Kind: Size, Severity: "medium", Server: e.Server, Evidence: of.toEvidence(bytes),
		Words: fmt.Sprintf(
			"%s %s %s directly, in one execution; %s", principalText(e.Principal), fmt.Sprintf(did, formatBytes(bytes)),
			e.Server, usualMaximum(of, formatBytes),
		),
	}, e)
}

func (d *anomalyDetector) checkBlacklisted(p *principalState, e core.AuditEvent, host string) {
	e.Server = host
	d.addFinding(p, AnomalyFinding{
		Kind: Blacklist, Severity: "high", Server: host, Evidence: FindingEvidence{Now: 1, Samples: 1}, sure: true,
		Words: fmt.Sprintf("a program of %s tried to reach %s, which is in network.blacklist; the attempt was refused", principalText(e.Principal), host),
	}, e)
}

// checkMovedBytes reports an execution that exchanges an unusually large amount of data with one host.
func (d *anomalyDetector) checkMovedBytes(p *principalState, e core.AuditEvent, bytes float64) {
	if bytes < veryMuch {
		return
	}
	d.addFinding(p, AnomalyFinding{
		Kind: Volume, Severity: "medium", Server: e.Server, Evidence: FindingEvidence{Now: bytes, Samples: 1}, sure: true,
		Words: fmt.Sprintf("a program of %s exchanged %s with %s in one execution", principalText(e.Principal), formatBytes(bytes), e.Server),
	}, e)
}
