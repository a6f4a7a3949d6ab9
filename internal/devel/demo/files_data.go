package demo

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// fill makes two years of a measurement company's files: logs, readings,
// reports, configuration and a few pictures.
func (f *files) fill() {
	r := seeded("files")
	a := newAuthor(f.w, "document", r)
	for i := range 24 {
		first := time.Date(now.Year(), now.Month()-time.Month(i+1), 1, 0, 0, 0, 0, time.UTC)
		month := first.Format("2006/01")
		for j := range 28 {
			f.put(fmt.Sprintf("logs/%s/ingest-%02d.log", month, j+1), func() string { return gatewayLog(first.AddDate(0, 0, j)) })
			f.put(fmt.Sprintf("readings/%s/site-%03d.csv", month, j+1), func() string { return readings(i*28 + j) })
		}
		f.put("reports/"+month+"/summary.md", fixed("# Summary "+month+"\n\n"+a.paragraph(6)+"\n\n"+a.paragraph(4)+"\n"))
	}
	for _, c := range f.w.companies[:120] {
		f.put("customers/"+strings.TrimSuffix(c.Domain, ".example")+"/notes.md", fixed("# "+c.Name+"\n\n"+a.paragraph(5)+"\n"))
	}
	f.put("README.md", fixed("# Nordlys file store\n\nLogs, readings, reports and notes on customers.\nNothing in config/ may be changed by hand.\n"))
	f.put("config/ingest.yaml", fixed("listen: 0.0.0.0:8443\nworkers: 16\nbatch:\n  rows: 500\n  wait: 250ms\nretention:\n  raw: 400d\n"))
	f.nodes[filesRoot+"/config/ingest.yaml"].readOnly = true
	for i := range 6 {
		name := fmt.Sprintf("photos/site-%d.png", i+1)
		f.put(name, func() string { return string(asPNG(name, 128)) })
		f.nodes[filesRoot+"/"+name].mime = pngMime
	}
}

// put stores a file and creates the directories above it.
func (f *files) put(name string, content func() string) {
	full := path.Join(filesRoot, name)
	modified := now.Add(-time.Duration(len(f.nodes)) * 11 * time.Hour)
	f.nodes[full] = &node{content: content, modified: modified}
	for dir := path.Dir(full); f.nodes[dir] == nil; dir = path.Dir(dir) {
		f.nodes[dir] = &node{dir: true, modified: modified}
	}
}

func gatewayLog(at time.Time) string {
	r := seeded("log " + day(at))
	var b strings.Builder
	for range 60 {
		at = at.Add(time.Duration(between(r, 1, 900)) * time.Second)
		level, text := "INFO", fmt.Sprintf("stored %d readings of gateway g%04d", between(r, 1, 500), r.IntN(2000))
		switch r.IntN(20) {
		case 0:
			level, text = "ERROR", fmt.Sprintf("gateway g%04d: connection reset by peer", r.IntN(2000))
		case 1, 2:
			level, text = "WARN", fmt.Sprintf("batch took %d ms", between(r, 1000, 9000))
		}
		fmt.Fprintf(&b, "%s %-5s %s\n", at.Format(time.RFC3339), level, text)
	}
	return b.String()
}

func readings(n int) string {
	r := seeded(fmt.Sprint("readings ", n))
	var b strings.Builder
	b.WriteString("sensor,hour,celsius\n")
	for i := range 96 {
		fmt.Fprintf(&b, "S-%04d,%02d,%.2f\n", n%500+i/24, i%24, float64(between(r, -2400, 2600))/100)
	}
	return b.String()
}
