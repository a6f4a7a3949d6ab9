package demo

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// fillFiles creates the files of a company that makes measuring instruments, from two years: logs, readings, reports,
// configuration and a few pictures.
func (f *fileServer) fillFiles() {
	r := newSeededRand("files")
	a := newAuthor(f.w, "document", r)
	for i := range 24 {
		first := time.Date(demoToday.Year(), demoToday.Month()-time.Month(i+1), 1, 0, 0, 0, 0, time.UTC)
		month := first.Format("2006/01")
		for j := range 28 {
			f.putFile(fmt.Sprintf("logs/%s/ingest-%02d.log", month, j+1), func() string { return gatewayLog(first.AddDate(0, 0, j)) })
			f.putFile(fmt.Sprintf("readings/%s/site-%03d.csv", month, j+1), func() string { return makeReadings(i*28 + j) })
		}
		f.putFile("reports/"+month+"/summary.md", fixedContent("# Summary "+month+"\n\n"+a.writeParagraph(6)+"\n\n"+a.writeParagraph(4)+"\n"))
	}
	for _, c := range f.w.companies[:120] {
		f.putFile("customers/"+strings.TrimSuffix(c.Domain, ".example")+"/notes.md", fixedContent("# "+c.Name+"\n\n"+a.writeParagraph(5)+"\n"))
	}
	f.putFile(
		"README.md",
		fixedContent("# Nordlys file store\n\nLogs, readings, reports and notes on customers.\nNothing in config/ may be changed by hand.\n"),
	)
	f.putFile(
		"config/ingest.yaml",
		fixedContent("listen: 0.0.0.0:8443\nworkers: 16\nbatch:\n  rows: 500\n  wait: 250ms\nretention:\n  raw: 400d\n"),
	)
	f.nodes[filesRoot+"/config/ingest.yaml"].readOnly = true
	for i := range 6 {
		name := fmt.Sprintf("photos/site-%d.png", i+1)
		f.putFile(name, func() string { return string(asPNG(name, 128)) })
		f.nodes[filesRoot+"/"+name].mime = pngMime
	}
}

// putFile stores a file and creates the directories above it.
func (f *fileServer) putFile(name string, content func() string) {
	full := path.Join(filesRoot, name)
	modified := demoToday.Add(-time.Duration(len(f.nodes)) * 11 * time.Hour)
	f.nodes[full] = &fileNode{content: content, modified: modified}
	for dir := path.Dir(full); f.nodes[dir] == nil; dir = path.Dir(dir) {
		f.nodes[dir] = &fileNode{dir: true, modified: modified}
	}
}

func gatewayLog(at time.Time) string {
	r := newSeededRand("log " + formatDay(at))
	var b strings.Builder
	for range 60 {
		at = at.Add(time.Duration(randomBetween(r, 1, 900)) * time.Second)
		level, text := "INFO", fmt.Sprintf("stored %d readings of gateway g%04d", randomBetween(r, 1, 500), r.IntN(2000))
		switch r.IntN(20) {
		case 0:
			level, text = "ERROR", fmt.Sprintf("gateway g%04d: connection reset by peer", r.IntN(2000))
		case 1, 2:
			level, text = "WARN", fmt.Sprintf("batch took %d ms", randomBetween(r, 1000, 9000))
		}
		fmt.Fprintf(&b, "%s %-5s %s\n", at.Format(time.RFC3339), level, text)
	}
	return b.String()
}

func makeReadings(n int) string {
	r := newSeededRand(fmt.Sprint("readings ", n))
	var b strings.Builder
	b.WriteString("sensor,hour,celsius\n")
	for i := range 96 {
		fmt.Fprintf(&b, "S-%04d,%02d,%.2f\n", n%500+i/24, i%24, float64(randomBetween(r, -2400, 2600))/100)
	}
	return b.String()
}
