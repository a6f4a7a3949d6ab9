package demo

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

func (s *issueServer) fillRepos() {
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
		r := &issueRepo{
			Name: x.name, FullName: "nordlys/" + x.name, Description: x.description, Language: x.language,
			Private: x.name != "handbook",
		}
		s.repos = append(s.repos, r)
		s.fillRepo(r, x.issues)
	}
}

func (s *issueServer) fillRepo(r *issueRepo, count int) {
	rnd := newSeededRand("issues " + r.Name)
	a := newAuthor(s.w, "issue", rnd)
	created := demoToday.AddDate(-2, 0, 0)
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

func (s *issueServer) newIssue(r *rand.Rand, a *proseAuthor, number int, created time.Time) *repoIssue {
	title := strings.TrimSuffix(a.writeSentence(), ".")
	x := &repoIssue{Number: number, Title: title, State: "open", User: pickOne(
		r, s.w.staff,
	).mailName(), Labels: []string{}, Assignees: []string{},
		Created: created.UTC(), Updated: created.UTC(), Body: a.writeParagraph(randomBetween(r, 2, 5))}
	x.Labels = append(x.Labels, pickOne(r, []string{"bug", "bug", "enhancement", "documentation", "question"}))
	if r.IntN(5) == 0 {
		x.Labels = append(x.Labels, pickOne(r, []string{"priority: high", "priority: low", "customer", "good first issue"}))
	}
	if r.IntN(2) == 0 {
		x.Assignees = append(x.Assignees, pickOne(r, s.w.staff).mailName())
	}
	for i := range r.IntN(5) {
		x.Updated = x.Updated.Add(time.Duration(randomBetween(r, 1, 40)) * time.Hour)
		x.comments = append(x.comments, issueComment{number*10 + i, pickOne(r, s.w.staff).mailName(), x.Updated, a.writeSentence()})
	}
	x.Comments = len(x.comments)
	if r.IntN(4) == 0 {
		x.Title = "Fix: " + strings.ToLower(title[:1]) + title[1:]
		x.Pull = &pullRequest{Head: fmt.Sprintf("fix-%d", number), Base: "main", Draft: r.IntN(6) == 0, Conflict: r.IntN(6) == 0,
			Files: randomBetween(r, 1, 14)}
	}
	if age := demoToday.Sub(created); r.IntN(100) < 60+int(age.Hours()/24/25) {
		at := x.Updated.Add(time.Duration(randomBetween(r, 1, 72)) * time.Hour)
		x.State, x.Reason, x.Updated, x.Closed = "closed", "completed", at, &at
		if x.Pull != nil {
			x.Pull.Merged, x.Pull.Draft, x.Pull.Conflict = true, false, false
		}
	}
	if x.Updated.After(demoToday) {
		x.Updated = demoToday
	}
	return x
}

// pullDiff returns the diff of a pull request as plain text.
func (s *issueServer) pullDiff(in struct {
	Owner  string `json:"owner"`
	Repo   string `json:"repo"`
	Number int    `json:"pull_number"`
}) (toolResult, error) {
	repo, x, err := s.findPull(in.Owner, in.Repo, in.Number)
	if err != nil {
		return toolResult{}, err
	}
	r := newSeededRand(fmt.Sprint("diff ", repo.FullName, x.Number))
	var b strings.Builder
	for i := range x.Pull.Files {
		path := fmt.Sprintf(
			"internal/%s/%s_%d.go", pickOne(r, []string{"export", "ingest", "alarm", "billing"}),
			pickOne(r, []string{"writer", "reader", "query", "page"}), i,
		)
		line := randomBetween(r, 10, 400)
		fmt.Fprintf(&b, "diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -%[2]d,4 +%[2]d,5 @@\n", path, line)
		fmt.Fprintf(
			&b,
			" \trows, err := load(ctx, id)\n-\tlimit := %d\n+\tlimit := %d\n+\tdefer rows.Close()\n \tif err != nil {\n",
			randomBetween(r, 10, 500), randomBetween(r, 500, 5000),
		)
	}
	return textResult("%s", b.String())
}
