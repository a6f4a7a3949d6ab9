package demo

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

func (s *issues) fill() {
	for _, x := range []struct {
		name, description, language string
		issues                      int
	}{
		{"aurora", "The web application for readings and alarms", "TypeScript", 1400},
		{"aurora-ingest", "Takes readings from gateways", "Go", 640},
		{"gateway-firmware", "Firmware of the G2 and G2X gateways", "C", 480},
		{"calibration-tools", "Calibration and certificates", "Python", 210},
		{"infrastructure", "Clusters, networks and deployments", "HCL", 320},
		{"handbook", "How we work", "Markdown", 90},
	} {
		r := &repo{Name: x.name, FullName: "nordlys/" + x.name, Description: x.description, Language: x.language, Private: x.name != "handbook"}
		s.repos = append(s.repos, r)
		s.fillRepo(r, x.issues)
	}
}

func (s *issues) fillRepo(r *repo, count int) {
	rnd := seeded("issues " + r.Name)
	a := newAuthor(s.w, "issue", rnd)
	created := now.AddDate(-2, 0, 0)
	step := 2 * 365 * 24 * time.Hour / time.Duration(count+1)
	for n := range count {
		created = created.Add(step).Truncate(time.Second)
		x := s.newIssue(rnd, a, n+1, created)
		if x.State == "open" {
			r.Open++
		}
		r.issues = append(r.issues, x)
	}
}

func (s *issues) newIssue(r *rand.Rand, a *author, number int, created time.Time) *issue {
	title := strings.TrimSuffix(a.sentence(), ".")
	x := &issue{Number: number, Title: title, State: "open", User: pick(r, s.w.staff).handle(), Labels: []string{}, Assignees: []string{},
		Created: created.UTC(), Updated: created.UTC(), Body: a.paragraph(between(r, 2, 5))}
	x.Labels = append(x.Labels, pick(r, []string{"bug", "bug", "enhancement", "documentation", "question"}))
	if r.IntN(5) == 0 {
		x.Labels = append(x.Labels, pick(r, []string{"priority: high", "priority: low", "customer", "good first issue"}))
	}
	if r.IntN(2) == 0 {
		x.Assignees = append(x.Assignees, pick(r, s.w.staff).handle())
	}
	for i := range r.IntN(5) {
		x.Updated = x.Updated.Add(time.Duration(between(r, 1, 40)) * time.Hour)
		x.comments = append(x.comments, comment{number*10 + i, pick(r, s.w.staff).handle(), x.Updated, a.sentence()})
	}
	x.Comments = len(x.comments)
	if r.IntN(4) == 0 {
		x.Title = "Fix: " + strings.ToLower(title[:1]) + title[1:]
		x.Pull = &pull{Head: fmt.Sprintf("fix-%d", number), Base: "main", Draft: r.IntN(6) == 0, Conflict: r.IntN(6) == 0,
			Files: between(r, 1, 14)}
	}
	if age := now.Sub(created); r.IntN(100) < 60+int(age.Hours()/24/25) {
		at := x.Updated.Add(time.Duration(between(r, 1, 72)) * time.Hour)
		x.State, x.Reason, x.Updated, x.Closed = "closed", "completed", at, &at
		if x.Pull != nil {
			x.Pull.Merged, x.Pull.Draft, x.Pull.Conflict = true, false, false
		}
	}
	if x.Updated.After(now) {
		x.Updated = now
	}
	return x
}

// diff returns the change of a pull request as a patch in plain text.
func (s *issues) diff(in struct {
	Owner  string `json:"owner"`
	Repo   string `json:"repo"`
	Number int    `json:"pull_number"`
}) (result, error) {
	repo, x, err := s.pull(in.Owner, in.Repo, in.Number)
	if err != nil {
		return result{}, err
	}
	r := seeded(fmt.Sprint("diff ", repo.FullName, x.Number))
	var b strings.Builder
	for i := range x.Pull.Files {
		path := fmt.Sprintf("internal/%s/%s_%d.go", pick(r, []string{"export", "ingest", "alarm", "billing"}), pick(r, []string{"writer", "reader", "query", "page"}), i)
		line := between(r, 10, 400)
		fmt.Fprintf(&b, "diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -%[2]d,4 +%[2]d,5 @@\n", path, line)
		fmt.Fprintf(&b, " \trows, err := load(ctx, id)\n-\tlimit := %d\n+\tlimit := %d\n+\tdefer rows.Close()\n \tif err != nil {\n", between(r, 10, 500), between(r, 500, 5000))
	}
	return plain("%s", b.String())
}
