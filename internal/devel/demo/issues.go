package demo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

type issueServer struct {
	*serverBase
	w     *demoWorld
	repos []*issueRepo
}

type issueRepo struct {
	Name        string `json:"name"`
	FullName    string `json:"full_name"`
	Description string `json:"description"`
	Language    string `json:"language"`
	Private     bool   `json:"private"`
	Open        int    `json:"open_issues_count"`

	issues []*repoIssue // the issue with number n has index n-1
}

type repoIssue struct {
	Number    int          `json:"number"`
	Title     string       `json:"title"`
	State     string       `json:"state"`
	Reason    string       `json:"state_reason,omitempty"`
	User      string       `json:"user"`
	Labels    []string     `json:"labels"`
	Assignees []string     `json:"assignees"`
	Comments  int          `json:"comments"`
	Created   time.Time    `json:"created_at"`
	Updated   time.Time    `json:"updated_at"`
	Closed    *time.Time   `json:"closed_at"`
	Body      string       `json:"body"`
	Pull      *pullRequest `json:"pull_request,omitempty"`

	comments []issueComment
}

type pullRequest struct {
	Head     string `json:"head"`
	Base     string `json:"base"`
	Draft    bool   `json:"draft"`
	Merged   bool   `json:"merged"`
	Conflict bool   `json:"has_conflicts"`
	Files    int    `json:"changed_files"`
}

type issueComment struct {
	ID      int       `json:"id"`
	User    string    `json:"user"`
	Created time.Time `json:"created_at"`
	Body    string    `json:"body"`
}

func buildIssues(b *serverBase) map[string]toolFunc {
	s := &issueServer{serverBase: b, w: newWorld()}
	s.fillRepos()
	return map[string]toolFunc{
		"list_repositories":     readTool(s.listRepos),
		"list_issues":           readTool(s.listIssues),
		"search_issues":         readTool(s.searchIssues),
		"get_issue":             readTool(s.getIssue),
		"list_issue_comments":   readTool(s.listComments),
		"list_pull_requests":    readTool(s.listPulls),
		"get_pull_request_diff": readTool(s.pullDiff),
		"list_events":           readTool(s.listEvents),
		"create_issue":          writeTool(s.createIssue),
		"update_issue":          writeTool(s.updateIssue),
		"add_issue_comment":     writeTool(s.addComment),
		"merge_pull_request":    writeTool(s.mergePull),
	}
}

// findRepo returns a repository. The names "forbidden" and "rate-limited" cause errors on purpose.
func (s *issueServer) findRepo(owner, name string) (*issueRepo, error) {
	i := slices.IndexFunc(s.repos, func(r *issueRepo) bool { return strings.EqualFold(r.FullName, owner+"/"+name) })
	if i >= 0 {
		return s.repos[i], nil
	}
	if err := s.provokedError(name); err != nil {
		return nil, err
	}
	return nil, s.missingError("repository", owner+"/"+name)
}

func (s *issueServer) findIssue(owner, name string, number int) (*issueRepo, *repoIssue, error) {
	r, err := s.findRepo(owner, name)
	if err != nil {
		return nil, nil, err
	}
	if number < 1 || number > len(r.issues) {
		return nil, nil, s.missingError("issue", r.FullName+"#"+strconv.Itoa(number))
	}
	return r, r.issues[number-1], nil
}

func (s *issueServer) findPull(owner, name string, number int) (*issueRepo, *repoIssue, error) {
	r, x, err := s.findIssue(owner, name, number)
	if err == nil && x.Pull == nil {
		err = s.missingError("pull request", r.FullName+"#"+strconv.Itoa(number))
	}
	return r, x, err
}

// pageOf returns one page of a list. Pages are numbered from 1, as in GitHub's API.
func pageOf[T any](list []T, page, size int) []T {
	size = orDefault(size, 30)
	return pageByOffset(list, (orDefault(page, 1)-1)*size, size)
}

func (s *issueServer) listRepos(in struct {
	Page    int `json:"page"`
	PerPage int `json:"per_page"`
}) (toolResult, error) {
	return jsonText(pageOf(s.repos, in.Page, in.PerPage))
}

type issueList struct {
	Owner     string    `json:"owner"`
	Repo      string    `json:"repo"`
	State     string    `json:"state"`
	Labels    []string  `json:"labels"`
	Assignee  string    `json:"assignee"`
	Since     time.Time `json:"since"`
	Sort      string    `json:"sort"`
	Direction string    `json:"direction"`
	Page      int       `json:"page"`
	PerPage   int       `json:"per_page"`
}

func (s *issueServer) listIssues(in issueList) (toolResult, error) {
	return s.listKind(in, func(x *repoIssue) bool { return x.Pull == nil })
}

func (s *issueServer) listPulls(in issueList) (toolResult, error) {
	return s.listKind(in, func(x *repoIssue) bool { return x.Pull != nil })
}

func (s *issueServer) listKind(in issueList, wanted func(*repoIssue) bool) (toolResult, error) {
	r, err := s.findRepo(in.Owner, in.Repo)
	if err != nil {
		return toolResult{}, err
	}
	var found []*repoIssue
	for _, x := range r.issues {
		if wanted(x) && in.matchesIssue(x) {
			found = append(found, x)
		}
	}
	in.sortIssues(found)
	return jsonText(pageOf(found, in.Page, in.PerPage))
}

func (in issueList) matchesIssue(x *repoIssue) bool {
	state := orDefault(in.State, "open")
	missing := slices.ContainsFunc(in.Labels, func(l string) bool { return !slices.Contains(x.Labels, l) })
	return (state == "all" || state == x.State) && !missing && (in.Assignee == "" || slices.Contains(x.Assignees, in.Assignee)) &&
		!x.Updated.Before(in.Since)
}

func (in issueList) sortIssues(found []*repoIssue) {
	slices.SortStableFunc(found, func(a, b *repoIssue) int {
		n := a.Created.Compare(b.Created)
		switch in.Sort {
		case "updated":
			n = a.Updated.Compare(b.Updated)
		case "comments":
			n = a.Comments - b.Comments
		}
		if in.Direction == "asc" {
			return n
		}
		return -n
	})
}

func (s *issueServer) searchIssues(in struct {
	Query   string `json:"query"`
	Page    int    `json:"page"`
	PerPage int    `json:"per_page"`
}) (toolResult, error) {
	type item struct {
		Repository string `json:"repository"`
		*repoIssue
	}
	tests, err := issueTerms(in.Query)
	if err != nil {
		return toolResult{}, err
	}
	var found []item
	for _, r := range s.repos {
		for _, x := range r.issues {
			if !slices.ContainsFunc(tests, func(t func(*issueRepo, *repoIssue) bool) bool { return !t(r, x) }) {
				found = append(found, item{r.FullName, x})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b item) int { return b.Updated.Compare(a.Updated) })
	return structuredResult(struct {
		Total      int    `json:"total_count"`
		Incomplete bool   `json:"incomplete_results"`
		Items      []item `json:"items"`
	}{len(found), false, pageOf(found, in.Page, in.PerPage)})
}

func issueTerms(query string) ([]func(*issueRepo, *repoIssue) bool, error) {
	var tests []func(*issueRepo, *repoIssue) bool
	for word := range strings.FieldsSeq(query) {
		qualifier, value, found := strings.Cut(word, ":")
		test := func(_ *issueRepo, x *repoIssue) bool { return containsFold(x.Title+"\n"+x.Body, word) }
		switch {
		case !found:
		case qualifier == "repo":
			test = func(r *issueRepo, _ *repoIssue) bool { return strings.EqualFold(r.FullName, value) }
		case qualifier == "label":
			test = func(_ *issueRepo, x *repoIssue) bool { return slices.Contains(x.Labels, value) }
		case qualifier == "author":
			test = func(_ *issueRepo, x *repoIssue) bool { return x.User == value }
		case qualifier == "assignee":
			test = func(_ *issueRepo, x *repoIssue) bool { return slices.Contains(x.Assignees, value) }
		case word == "is:pr" || word == "is:issue":
			test = func(_ *issueRepo, x *repoIssue) bool { return (x.Pull != nil) == (value == "pr") }
		case word == "is:open" || word == "is:closed" || word == "state:open" || word == "state:closed":
			test = func(_ *issueRepo, x *repoIssue) bool { return x.State == value }
		default:
			return nil, fmt.Errorf(
				"422 Validation failed: the query cannot be parsed at '%s'; it knows repo: label: author: assignee: is:open|closed|pr|issue",
				word,
			)
		}
		tests = append(tests, test)
	}
	return tests, nil
}

func (s *issueServer) getIssue(in struct {
	Owner  string `json:"owner"`
	Repo   string `json:"repo"`
	Number int    `json:"issue_number"`
}) (toolResult, error) {
	_, x, err := s.findIssue(in.Owner, in.Repo, in.Number)
	if err != nil {
		return toolResult{}, err
	}
	return jsonText(x)
}

func (s *issueServer) listComments(in struct {
	Owner   string `json:"owner"`
	Repo    string `json:"repo"`
	Number  int    `json:"issue_number"`
	Page    int    `json:"page"`
	PerPage int    `json:"per_page"`
}) (toolResult, error) {
	_, x, err := s.findIssue(in.Owner, in.Repo, in.Number)
	if err != nil {
		return toolResult{}, err
	}
	return jsonText(pageOf(x.comments, in.Page, in.PerPage))
}

func (s *issueServer) listEvents(in struct {
	Owner  string `json:"owner"`
	Repo   string `json:"repo"`
	Number int    `json:"issue_number"`
}) (toolResult, error) {
	target := ""
	if in.Number != 0 {
		target = fmt.Sprintf("%s/%s#%d", in.Owner, in.Repo, in.Number)
	}
	return structuredResult(struct {
		Events []RecordedEffect `json:"events"`
	}{s.effectsOn(target)})
}

// recordChange records a change of an issue.
func (s *issueServer) recordChange(tool string, r *issueRepo, x *repoIssue, format string, args ...any) {
	x.Updated = s.nextTime()
	s.recordEffect(tool, fmt.Sprintf("%s#%d", r.FullName, x.Number), format, args...)
}

type issueRef struct {
	Number int    `json:"number"`
	State  string `json:"state"`
	URL    string `json:"html_url"`
}

func issueReference(r *issueRepo, x *repoIssue) (toolResult, error) {
	return structuredResult(issueRef{x.Number, x.State, fmt.Sprintf("https://issues.nordlys.example/%s/%d", r.FullName, x.Number)})
}

func (s *issueServer) createIssue(in struct {
	Owner     string   `json:"owner"`
	Repo      string   `json:"repo"`
	Title     string   `json:"title"`
	Body      string   `json:"body"`
	Labels    []string `json:"labels"`
	Assignees []string `json:"assignees"`
}) (toolResult, error) {
	r, err := s.findRepo(in.Owner, in.Repo)
	if err != nil {
		return toolResult{}, err
	}
	if err := s.knownPeople(in.Assignees); err != nil {
		return toolResult{}, err
	}
	x := &repoIssue{Number: len(
		r.issues,
	) + 1, Title: in.Title, State: "open", User: s.w.staff[0].mailName(), Labels: append([]string{}, in.Labels...),
		Assignees: append([]string{}, in.Assignees...), Created: s.nextTime(), Body: in.Body}
	r.issues = append(r.issues, x)
	r.Open++
	s.recordChange("create_issue", r, x, "%s", in.Title)
	return issueReference(r, x)
}

func (s *issueServer) knownPeople(handles []string) error {
	for _, h := range handles {
		if !slices.ContainsFunc(s.w.staff, func(p worldPerson) bool { return p.mailName() == h }) {
			return fmt.Errorf("422 Validation failed: '%s' is not a member of nordlys and cannot be assigned", h)
		}
	}
	return nil
}

func (s *issueServer) updateIssue(in struct {
	Owner     string    `json:"owner"`
	Repo      string    `json:"repo"`
	Number    int       `json:"issue_number"`
	Title     *string   `json:"title"`
	Body      *string   `json:"body"`
	State     string    `json:"state"`
	Reason    string    `json:"state_reason"`
	Labels    *[]string `json:"labels"`
	Assignees *[]string `json:"assignees"`
}) (toolResult, error) {
	r, x, err := s.findIssue(in.Owner, in.Repo, in.Number)
	if err != nil {
		return toolResult{}, err
	}
	if in.Assignees != nil {
		if err := s.knownPeople(*in.Assignees); err != nil {
			return toolResult{}, err
		}
	}
	assignIfSet(&x.Title, in.Title)
	assignIfSet(&x.Body, in.Body)
	assignIfSet(&x.Labels, in.Labels)
	assignIfSet(&x.Assignees, in.Assignees)
	s.setState(r, x, orDefault(in.State, x.State), in.Reason)
	s.recordChange("update_issue", r, x, "%s", x.State)
	return issueReference(r, x)
}

func assignIfSet[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func (s *issueServer) setState(r *issueRepo, x *repoIssue, state, reason string) {
	if state == x.State {
		return
	}
	x.State, x.Reason, x.Closed = state, "", nil
	r.Open++
	if state == "closed" {
		r.Open -= 2
		at := s.nextTime()
		x.Reason, x.Closed = orDefault(reason, "completed"), &at
	}
}

func (s *issueServer) addComment(in struct {
	Owner  string `json:"owner"`
	Repo   string `json:"repo"`
	Number int    `json:"issue_number"`
	Body   string `json:"body"`
}) (toolResult, error) {
	r, x, err := s.findIssue(in.Owner, in.Repo, in.Number)
	if err != nil {
		return toolResult{}, err
	}
	c := issueComment{ID: 900_000 + len(s.effects), User: s.w.staff[0].mailName(), Created: s.nextTime(), Body: in.Body}
	x.comments = append(x.comments, c)
	x.Comments++
	s.recordChange("add_issue_comment", r, x, "comment %d", c.ID)
	return jsonText(c)
}

func (s *issueServer) mergePull(in struct {
	Owner  string `json:"owner"`
	Repo   string `json:"repo"`
	Number int    `json:"pull_number"`
	Method string `json:"merge_method"`
}) (toolResult, error) {
	r, x, err := s.findPull(in.Owner, in.Repo, in.Number)
	switch {
	case err != nil:
		return toolResult{}, err
	case x.State == "closed":
		return toolResult{}, fmt.Errorf("405 Method not allowed: pull request #%d is closed", x.Number)
	case x.Pull.Draft || x.Pull.Conflict:
		return toolResult{}, fmt.Errorf(
			"409 Conflict: pull request #%d is not mergeable (draft: %v, conflicts: %v)", x.Number, x.Pull.Draft,
			x.Pull.Conflict,
		)
	}
	x.Pull.Merged = true
	s.setState(r, x, "closed", "")
	s.recordChange("merge_pull_request", r, x, "merged by %s", orDefault(in.Method, "merge"))
	return textResult("Pull request #%d was merged into %s.", x.Number, x.Pull.Base)
}
