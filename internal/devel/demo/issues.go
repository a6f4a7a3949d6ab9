package demo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

type issues struct {
	*base
	w     *world
	repos []*repo
}

type repo struct {
	Name        string `json:"name"`
	FullName    string `json:"full_name"`
	Description string `json:"description"`
	Language    string `json:"language"`
	Private     bool   `json:"private"`
	Open        int    `json:"open_issues_count"`

	issues []*issue // by number, from 1 on
}

type issue struct {
	Number    int        `json:"number"`
	Title     string     `json:"title"`
	State     string     `json:"state"`
	Reason    string     `json:"state_reason,omitempty"`
	User      string     `json:"user"`
	Labels    []string   `json:"labels"`
	Assignees []string   `json:"assignees"`
	Comments  int        `json:"comments"`
	Created   time.Time  `json:"created_at"`
	Updated   time.Time  `json:"updated_at"`
	Closed    *time.Time `json:"closed_at"`
	Body      string     `json:"body"`
	Pull      *pull      `json:"pull_request,omitempty"`

	comments []comment
}

type pull struct {
	Head     string `json:"head"`
	Base     string `json:"base"`
	Draft    bool   `json:"draft"`
	Merged   bool   `json:"merged"`
	Conflict bool   `json:"has_conflicts"`
	Files    int    `json:"changed_files"`
}

type comment struct {
	ID      int       `json:"id"`
	User    string    `json:"user"`
	Created time.Time `json:"created_at"`
	Body    string    `json:"body"`
}

func buildIssues(b *base) map[string]tool {
	s := &issues{base: b, w: newWorld()}
	s.fill()
	return map[string]tool{
		"list_repositories":     read(s.listRepos),
		"list_issues":           read(s.list),
		"search_issues":         read(s.search),
		"get_issue":             read(s.get),
		"list_issue_comments":   read(s.listComments),
		"list_pull_requests":    read(s.listPulls),
		"get_pull_request_diff": read(s.diff),
		"list_events":           read(s.events),
		"create_issue":          write(s.create),
		"update_issue":          write(s.update),
		"add_issue_comment":     write(s.addComment),
		"merge_pull_request":    write(s.merge),
	}
}

// repo finds a repository. "forbidden" and "rate-limited" are names to provoke errors with.
func (s *issues) repo(owner, name string) (*repo, error) {
	i := slices.IndexFunc(s.repos, func(r *repo) bool { return strings.EqualFold(r.FullName, owner+"/"+name) })
	if i >= 0 {
		return s.repos[i], nil
	}
	if err := s.provoked(name); err != nil {
		return nil, err
	}
	return nil, s.missing("repository", owner+"/"+name)
}

func (s *issues) issue(owner, name string, number int) (*repo, *issue, error) {
	r, err := s.repo(owner, name)
	if err != nil {
		return nil, nil, err
	}
	if number < 1 || number > len(r.issues) {
		return nil, nil, s.missing("issue", r.FullName+"#"+strconv.Itoa(number))
	}
	return r, r.issues[number-1], nil
}

func (s *issues) pull(owner, name string, number int) (*repo, *issue, error) {
	r, x, err := s.issue(owner, name, number)
	if err == nil && x.Pull == nil {
		err = s.missing("pull request", r.FullName+"#"+strconv.Itoa(number))
	}
	return r, x, err
}

// paged returns one page of list. Pages are numbered as GitHub does.
func paged[T any](list []T, page, size int) []T {
	size = or(size, 30)
	return pageByOffset(list, (or(page, 1)-1)*size, size)
}

func (s *issues) listRepos(in struct {
	Page    int `json:"page"`
	PerPage int `json:"per_page"`
}) (result, error) {
	return jsonText(paged(s.repos, in.Page, in.PerPage))
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

func (s *issues) list(in issueList) (result, error) {
	return s.listKind(in, func(x *issue) bool { return x.Pull == nil })
}

func (s *issues) listPulls(in issueList) (result, error) {
	return s.listKind(in, func(x *issue) bool { return x.Pull != nil })
}

func (s *issues) listKind(in issueList, wanted func(*issue) bool) (result, error) {
	r, err := s.repo(in.Owner, in.Repo)
	if err != nil {
		return result{}, err
	}
	var found []*issue
	for _, x := range r.issues {
		if wanted(x) && in.fits(x) {
			found = append(found, x)
		}
	}
	in.sort(found)
	return jsonText(paged(found, in.Page, in.PerPage))
}

func (in issueList) fits(x *issue) bool {
	state := or(in.State, "open")
	missing := slices.ContainsFunc(in.Labels, func(l string) bool { return !slices.Contains(x.Labels, l) })
	return (state == "all" || state == x.State) && !missing && (in.Assignee == "" || slices.Contains(x.Assignees, in.Assignee)) && !x.Updated.Before(in.Since)
}

func (in issueList) sort(found []*issue) {
	slices.SortStableFunc(found, func(a, b *issue) int {
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

func (s *issues) search(in struct {
	Query   string `json:"query"`
	Page    int    `json:"page"`
	PerPage int    `json:"per_page"`
}) (result, error) {
	type item struct {
		Repository string `json:"repository"`
		*issue
	}
	tests, err := issueTerms(in.Query)
	if err != nil {
		return result{}, err
	}
	var found []item
	for _, r := range s.repos {
		for _, x := range r.issues {
			if !slices.ContainsFunc(tests, func(t func(*repo, *issue) bool) bool { return !t(r, x) }) {
				found = append(found, item{r.FullName, x})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b item) int { return b.Updated.Compare(a.Updated) })
	return structured(struct {
		Total      int    `json:"total_count"`
		Incomplete bool   `json:"incomplete_results"`
		Items      []item `json:"items"`
	}{len(found), false, paged(found, in.Page, in.PerPage)})
}

func issueTerms(query string) ([]func(*repo, *issue) bool, error) {
	var tests []func(*repo, *issue) bool
	for word := range strings.FieldsSeq(query) {
		qualifier, value, found := strings.Cut(word, ":")
		test := func(_ *repo, x *issue) bool { return has(x.Title+"\n"+x.Body, word) }
		switch {
		case !found:
		case qualifier == "repo":
			test = func(r *repo, _ *issue) bool { return strings.EqualFold(r.FullName, value) }
		case qualifier == "label":
			test = func(_ *repo, x *issue) bool { return slices.Contains(x.Labels, value) }
		case qualifier == "author":
			test = func(_ *repo, x *issue) bool { return x.User == value }
		case qualifier == "assignee":
			test = func(_ *repo, x *issue) bool { return slices.Contains(x.Assignees, value) }
		case word == "is:pr" || word == "is:issue":
			test = func(_ *repo, x *issue) bool { return (x.Pull != nil) == (value == "pr") }
		case word == "is:open" || word == "is:closed" || word == "state:open" || word == "state:closed":
			test = func(_ *repo, x *issue) bool { return x.State == value }
		default:
			return nil, fmt.Errorf("422 Validation failed: the query cannot be parsed at '%s'; it knows repo: label: author: assignee: is:open|closed|pr|issue", word)
		}
		tests = append(tests, test)
	}
	return tests, nil
}

func (s *issues) get(in struct {
	Owner  string `json:"owner"`
	Repo   string `json:"repo"`
	Number int    `json:"issue_number"`
}) (result, error) {
	_, x, err := s.issue(in.Owner, in.Repo, in.Number)
	if err != nil {
		return result{}, err
	}
	return jsonText(x)
}

func (s *issues) listComments(in struct {
	Owner   string `json:"owner"`
	Repo    string `json:"repo"`
	Number  int    `json:"issue_number"`
	Page    int    `json:"page"`
	PerPage int    `json:"per_page"`
}) (result, error) {
	_, x, err := s.issue(in.Owner, in.Repo, in.Number)
	if err != nil {
		return result{}, err
	}
	return jsonText(paged(x.comments, in.Page, in.PerPage))
}

func (s *issues) events(in struct {
	Owner  string `json:"owner"`
	Repo   string `json:"repo"`
	Number int    `json:"issue_number"`
}) (result, error) {
	target := ""
	if in.Number != 0 {
		target = fmt.Sprintf("%s/%s#%d", in.Owner, in.Repo, in.Number)
	}
	return structured(struct {
		Events []Effect `json:"events"`
	}{s.effectsOn(target)})
}

// touched records a change of an issue.
func (s *issues) touched(tool string, r *repo, x *issue, format string, args ...any) {
	x.Updated = s.clock()
	s.did(tool, fmt.Sprintf("%s#%d", r.FullName, x.Number), format, args...)
}

type issueRef struct {
	Number int    `json:"number"`
	State  string `json:"state"`
	URL    string `json:"html_url"`
}

func reference(r *repo, x *issue) (result, error) {
	return structured(issueRef{x.Number, x.State, fmt.Sprintf("https://issues.nordlys.example/%s/%d", r.FullName, x.Number)})
}

func (s *issues) create(in struct {
	Owner     string   `json:"owner"`
	Repo      string   `json:"repo"`
	Title     string   `json:"title"`
	Body      string   `json:"body"`
	Labels    []string `json:"labels"`
	Assignees []string `json:"assignees"`
}) (result, error) {
	r, err := s.repo(in.Owner, in.Repo)
	if err != nil {
		return result{}, err
	}
	if err := s.knownPeople(in.Assignees); err != nil {
		return result{}, err
	}
	x := &issue{Number: len(r.issues) + 1, Title: in.Title, State: "open", User: s.w.staff[0].handle(), Labels: append([]string{}, in.Labels...),
		Assignees: append([]string{}, in.Assignees...), Created: s.clock(), Body: in.Body}
	r.issues = append(r.issues, x)
	r.Open++
	s.touched("create_issue", r, x, "%s", in.Title)
	return reference(r, x)
}

func (s *issues) knownPeople(handles []string) error {
	for _, h := range handles {
		if !slices.ContainsFunc(s.w.staff, func(p person) bool { return p.handle() == h }) {
			return fmt.Errorf("422 Validation failed: '%s' is not a member of nordlys and cannot be assigned", h)
		}
	}
	return nil
}

func (s *issues) update(in struct {
	Owner     string    `json:"owner"`
	Repo      string    `json:"repo"`
	Number    int       `json:"issue_number"`
	Title     *string   `json:"title"`
	Body      *string   `json:"body"`
	State     string    `json:"state"`
	Reason    string    `json:"state_reason"`
	Labels    *[]string `json:"labels"`
	Assignees *[]string `json:"assignees"`
}) (result, error) {
	r, x, err := s.issue(in.Owner, in.Repo, in.Number)
	if err != nil {
		return result{}, err
	}
	if in.Assignees != nil {
		if err := s.knownPeople(*in.Assignees); err != nil {
			return result{}, err
		}
	}
	assign(&x.Title, in.Title)
	assign(&x.Body, in.Body)
	assign(&x.Labels, in.Labels)
	assign(&x.Assignees, in.Assignees)
	s.setState(r, x, or(in.State, x.State), in.Reason)
	s.touched("update_issue", r, x, "%s", x.State)
	return reference(r, x)
}

func assign[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func (s *issues) setState(r *repo, x *issue, state, reason string) {
	if state == x.State {
		return
	}
	x.State, x.Reason, x.Closed = state, "", nil
	r.Open++
	if state == "closed" {
		r.Open -= 2
		at := s.clock()
		x.Reason, x.Closed = or(reason, "completed"), &at
	}
}

func (s *issues) addComment(in struct {
	Owner  string `json:"owner"`
	Repo   string `json:"repo"`
	Number int    `json:"issue_number"`
	Body   string `json:"body"`
}) (result, error) {
	r, x, err := s.issue(in.Owner, in.Repo, in.Number)
	if err != nil {
		return result{}, err
	}
	c := comment{ID: 900_000 + len(s.effects), User: s.w.staff[0].handle(), Created: s.clock(), Body: in.Body}
	x.comments = append(x.comments, c)
	x.Comments++
	s.touched("add_issue_comment", r, x, "comment %d", c.ID)
	return jsonText(c)
}

func (s *issues) merge(in struct {
	Owner  string `json:"owner"`
	Repo   string `json:"repo"`
	Number int    `json:"pull_number"`
	Method string `json:"merge_method"`
}) (result, error) {
	r, x, err := s.pull(in.Owner, in.Repo, in.Number)
	switch {
	case err != nil:
		return result{}, err
	case x.State == "closed":
		return result{}, fmt.Errorf("405 Method not allowed: pull request #%d is closed", x.Number)
	case x.Pull.Draft || x.Pull.Conflict:
		return result{}, fmt.Errorf("409 Conflict: pull request #%d is not mergeable (draft: %v, conflicts: %v)", x.Number, x.Pull.Draft, x.Pull.Conflict)
	}
	x.Pull.Merged = true
	s.setState(r, x, "closed", "")
	s.touched("merge_pull_request", r, x, "merged by %s", or(in.Method, "merge"))
	return plain("Pull request #%d was merged into %s.", x.Number, x.Pull.Base)
}
