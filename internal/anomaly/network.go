package anomaly

import (
	"fmt"

	"retort/internal/run"
)

// network is about a program that reaches for a host itself: refusals count like any, and
// what is read from and sent to a host like what is from and to a server.
func (d *detector) network(e run.Event) {
	host, _ := e.Facts["host"].(string)
	switch e.Status {
	case "refused":
		if kind := fmt.Sprint(e.Facts["error"]); kind == string(run.KindPolicy) {
			d.denial(e)
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
		x.add(x.sent, host, sent)
		x.add(x.read, host, got)
		to.writes++
	}
}

func (d *detector) volume(p *person, e run.Event, of *sketch, bytes float64, did string) {
	d.raise(p, Finding{
		Kind: Size, Severity: "medium", Server: e.Server, Evidence: of.evidence(bytes),
		Words: fmt.Sprintf("%s %s %s itself, in one execution; %s", who(e.Principal), fmt.Sprintf(did, size(bytes)), e.Server, most(of, size)),
	}, e)
}
