package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"retort/internal/devel/testenv"
)

// TestLinksResolve checks that each relative link of a page leads to a file, and to a heading if it names one.
func TestLinksResolve(t *testing.T) {
	pages := docPages(t)
	if len(pages) < 30 {
		t.Fatalf("only %d pages were found", len(pages))
	}
	found := 0
	for _, page := range pages {
		text := readPage(t, page)
		for _, link := range linksOf(text) {
			found++
			if problem := linkProblem(page, link); problem != "" {
				t.Errorf("%s: %s", page, problem)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d links were found", found)
	}
}

// TestBrokenLinksAreFound checks that linkProblem rejects links to missing pages, missing headings and files outside
// the module, and accepts valid links.
func TestBrokenLinksAreFound(t *testing.T) {
	for _, link := range []string{"docs/none.md", "docs/README.md#none", "#none", "../outside.md"} {
		if linkProblem("README.md", link) == "" {
			t.Errorf("nothing was found in the link %q", link)
		}
	}
	for _, link := range []string{"docs/README.md", "docs/README.md#guides", "#install", "https://example.org/none", "docs/security"} {
		if problem := linkProblem("README.md", link); problem != "" {
			t.Errorf("%q: %s", link, problem)
		}
	}
}

// TestEveryPageIsListed checks that every page of docs/ can be reached from docs/README.md, directly or through one
// other page.
func TestEveryPageIsListed(t *testing.T) {
	reached := map[string]bool{"docs/README.md": true}
	for range 2 {
		for page := range reached {
			for _, link := range linksOf(readPage(t, page)) {
				file, _, _ := strings.Cut(link, "#")
				if to := filepath.ToSlash(filepath.Join(filepath.Dir(page), file)); strings.HasPrefix(to, "docs/") && strings.HasSuffix(to, ".md") {
					reached[to] = true
				}
			}
		}
	}
	for _, page := range docPages(t) {
		if strings.HasPrefix(page, "docs/") && !reached[page] {
			t.Errorf("docs/README.md does not lead to %s", page)
		}
	}
}

var (
	metricRow  = regexp.MustCompile("(?m)^\\| `(retort\\.[a-z.]+)`")
	metricName = regexp.MustCompile(`\bretort_[a-z_]+\b`) // as Prometheus has it
)

// TestPagesNameRealMetrics checks that each metric that a page names is in the page of metrics.
func TestPagesNameRealMetrics(t *testing.T) {
	const reference = "docs/reference/metrics.md"
	known := map[string]bool{}
	for _, m := range metricRow.FindAllStringSubmatch(readPage(t, reference), -1) {
		known[strings.ReplaceAll(m[1], ".", "_")] = true
	}
	suffixes := regexp.MustCompile(`(_total|_seconds|_bucket|_sum|_count)+$`)
	isKnown := func(name string) bool { return known[suffixes.ReplaceAllString(name, "")] }
	for _, page := range docPages(t) {
		for _, name := range metricName.FindAllString(readPage(t, page), -1) {
			if !isKnown(name) {
				t.Errorf("%s names the metric %s, which %s does not have", page, name, reference)
			}
		}
	}
	if !isKnown("retort_call_duration_seconds_bucket") || !isKnown("retort_calls_total") || isKnown("retort_call_total") {
		t.Errorf("names of metrics are compared wrongly; known are %v", known)
	}
}

// docPages returns the paths of all documentation pages, relative to the root of the module.
func docPages(t *testing.T) []string {
	return append([]string{"README.md", "SECURITY.md", "CONTRIBUTING.md"}, testenv.MarkdownPages(t, root, []string{"docs", "examples"})...)
}

func readPage(t *testing.T, page string) string { return testenv.ReadPage(t, root, page) }

var (
	codeBlock  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeSpan   = regexp.MustCompile("``.+?``|`[^`\n]+`")
	inlineLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	notAnchor  = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_ -]`)
)

// linksOf returns the targets of the links in a text, without those in code.
func linksOf(text string) (links []string) {
	text = codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(text, ""), "")
	for _, m := range inlineLink.FindAllStringSubmatch(text, -1) {
		links = append(links, m[1])
	}
	return links
}

// linkProblem returns why a link on a page is broken, or "" if it is not. It does not check links to other hosts.
func linkProblem(page, link string) string {
	if strings.HasPrefix(link, "https://") {
		return ""
	}
	file, anchor, _ := strings.Cut(link, "#")
	to := filepath.Join(filepath.Dir(page), file)
	if file == "" {
		to = page
	}
	if !filepath.IsLocal(to) {
		return link + " leads out of the repository"
	}
	if _, err := os.Stat(filepath.Join(root, to)); err != nil {
		return link + " leads to no file"
	}
	if anchor == "" {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(root, to))
	if err != nil || !anchorsOf(string(text))[anchor] {
		return link + " leads to no heading"
	}
	return ""
}

// anchorsOf returns the anchors that GitHub gives the headings of a page. Unlike GitHub, it does not number equal
// headings.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		words := notAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		anchors[strings.ReplaceAll(words, " ", "-")] = true
	}
	return anchors
}
