package anomaly

import (
	"fmt"

	"retort/internal/core"
)

// network is about a program that reaches for a host itself: refusals count like any, and
// what is read from and sent to a host like what is from and to a server.
func (d *detector) network(e core.Event) {
	host, _ := e.Facts["host"].(string)
	switch e.Status {
	case "refused":
		if kind := fmt.Sprint(e.Facts["error"]); kind == string(core.KindPolicy) {
			d.denial(e)
		}
		if listed, _ := e.Facts["blacklist"].(bool); listed {
			d.blacklisted(d.person(e.Principal), e, host)
		}
	case "ended":
		p, x := d.person(e.Principal), d.execution(e.Execution)
		e.Server = host
		to, sent, got := d.flow(p, host), number(e.Facts["sent"]), float64(e.Bytes)
		d.leaks(p, e, x, to, sent)
		if all := x.sent[host] + sent; all >= largeArguments && to.writes >= d.o.Learning.Calls && to.sent.beyond(all) {
			d.volume(p, e, &to.sent, all, "sent %s to")
		}
		if all := x.read[host] + got; all >= largeAnswer && to.writes >= d.o.Learning.Calls && to.read.beyond(all) {
			d.volume(p, e, &to.read, all, "received %s from")
		}
		d.moved(p, e, x.sent[host]+sent+x.read[host]+got)
		x.add(x.sent, host, sent)
		x.add(x.read, host, got)
		to.writes++
	}
}

func (d *detector) volume(p *person, e core.Event, of *sketch, bytes float64, did string) {
	d.raise(p, Finding{
		Kind: Size, Severity: "medium", Server: e.Server, Evidence: of.evidence(bytes),
		Words: fmt.Sprintf("%s %s %s itself, in one execution; %s", who(e.Principal), fmt.Sprintf(did, size(bytes)), e.Server, most(of, size)),
	}, e)
}

func (d *detector) blacklisted(p *person, e core.Event, host string) {
	e.Server = host
	d.raise(p, Finding{
		Kind: Blacklist, Severity: "high", Server: host, Evidence: Evidence{Now: 1, Samples: 1}, sure: true,
		Words: fmt.Sprintf("a program of %s reached for %s, which network.blacklist names; it was refused", who(e.Principal), host),
	}, e)
}

// moved finds out whether an execution has exchanged very much with one host.
func (d *detector) moved(p *person, e core.Event, bytes float64) {
	if bytes < veryMuch {
		return
	}
	d.raise(p, Finding{
		Kind: Volume, Severity: "medium", Server: e.Server, Evidence: Evidence{Now: bytes, Samples: 1}, sure: true,
		Words: fmt.Sprintf("a program of %s exchanged %s with %s in one execution", who(e.Principal), size(bytes), e.Server),
	}, e)
}
