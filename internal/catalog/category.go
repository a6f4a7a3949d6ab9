package catalog

import (
	"strings"
	"sync"
	"unicode"

	"retort/internal/core"
)

// Other is the category of tools that fit no other category.
const Other = "other"

// categories lists the categories with the words that lead to them: names of well-known servers, and words in the
// names and descriptions of tools. They are used if the settings name no category. If several categories collect the
// same number of points, the first of them is used.
var categories = [...]struct {
	name     string
	products string // words of server names
	words    string // words of tools, singular
}{
	{
		"code", "github gitlab gitea bitbucket git sourcegraph sonarqube buildkite circleci jenkins npm nuget",
		"repository repo commit branch pull merge pipeline snippet gist fork package",
	},
	{
		"projects", "linear jira asana trello clickup todoist monday shortcut basecamp youtrack issues",
		"issue ticket task sprint epic milestone backlog todo project roadmap",
	},
	{
		"communication", "slack discord teams telegram whatsapp twilio gmail outlook mail email imap sendgrid zoom chat",
		"message email mail channel thread chat inbox sms reply notification",
	},
	{"calendar", "calendar gcal caldav calendly", "calendar event meeting appointment availability schedule invitee"},
	{"crm", "salesforce hubspot pipedrive zoho crm attio intercom zendesk", "lead contact opportunity deal account customer prospect"},
	{"files", "filesystem files drive gdrive dropbox box onedrive s3 sharepoint", "file directory folder path upload download"},
	{"documents", "notion confluence docs gdocs obsidian coda alfresco evernote", "page document doc block note wiki paragraph"},
	{"data", "airtable sheets gsheets excel spreadsheet smartsheet", "sheet spreadsheet row column cell worksheet record"},
	{
		"database",
		"postgres postgresql mysql sqlite mongodb redis neo4j neon supabase clickhouse bigquery snowflake database db",
		"sql query table schema database collection index cypher",
	},
	{
		"browser", "playwright puppeteer chrome browser browserbase selenium devtools",
		"click navigate screenshot hover browser tab dom viewport",
	},
	{"web", "tavily exa firecrawl perplexity brave serper search fetch context7", "crawl scrape website url web"},
	{
		"cloud", "aws azure gcp cloudflare kubernetes kubectl docker terraform vercel netlify heroku",
		"deployment pod container cluster bucket worker instance zone namespace function",
	},
	{"monitoring", "sentry datadog grafana newrelic prometheus pagerduty splunk", "alert incident metric log trace error monitor dashboard"},
	{
		"finance", "stripe paypal quickbooks xero plaid square zerodha kite",
		"invoice payment refund subscription price order balance transaction coupon",
	},
	{"security", "okta auth0 zscaler vectra snyk vault", "policy vulnerability detection threat role credential secret"},
	{"design", "figma canva webflow framer sketch", "design component frame style color layout"},
	{"memory", "memory mem0 kgrag", "entity relation observation memory graph"},
}

// byProduct and byWord return maps from words to indexes in categories.
var (
	// byProduct returns a map from names of well-known servers to indexes in categories. byWord returns one from
	// words in names and descriptions of tools.
	byProduct = sync.OnceValue(func() map[string][]int { return wordTable(func(i int) string { return categories[i].products }) })
	byWord    = sync.OnceValue(func() map[string][]int { return wordTable(func(i int) string { return categories[i].words }) })
)

func wordTable(column func(int) string) map[string][]int {
	table := map[string][]int{}
	for i := range categories {
		for _, word := range strings.Fields(column(i)) {
			table[word] = append(table[word], i)
		}
	}
	return table
}

// classifyTools returns the category of a server and of each of its tools. All tools of a well-known server have the
// server's category. For other servers, a tool's name determines its category or, if it does not, the category of
// most of the server's tools.
func classifyTools(server string, tools []*core.Tool) (string, []string) {
	each := make([]string, len(tools))
	for _, word := range splitWords(server) {
		if known, ok := byProduct()[word]; ok {
			whole := categories[known[0]].name
			for i := range each {
				each[i] = whole
			}
			return whole, each
		}
	}
	whole := majorityCategory(tools)
	for i, t := range tools {
		var own categoryVotes
		own.countWords(t.Name, 1)
		each[i] = own.strongestCategory(whole, 1)
	}
	return whole, each
}

// majorityCategory returns the category that most tools of a server belong to. Names count more than descriptions.
// Each tool adds at most one point, so that one frequent word does not decide about a server with many purposes.
func majorityCategory(tools []*core.Tool) string {
	var v categoryVotes
	for _, t := range tools {
		v.countWords(t.Name, 3)
		v.countWords(t.Description[:min(len(t.Description), 200)], 1)
	}
	return v.strongestCategory(Other, len(tools))
}

// categoryVotes counts points for each category, by its index in categories.
type categoryVotes [len(categories)]int

// countWords gives points to the categories of the words in a text. A word that is unknown and ends in s counts
// like the word without the s.
func (v *categoryVotes) countWords(text string, points int) {
	for _, word := range splitWords(text) {
		found, ok := byWord()[word]
		if !ok {
			found = byWord()[strings.TrimSuffix(word, "s")]
		}
		for _, i := range found {
			v[i] += points
		}
	}
}

// strongestCategory returns the category with the most points. If no category has at least enough points, it
// returns the argument otherwise.
func (v *categoryVotes) strongestCategory(otherwise string, enough int) string {
	best, most := otherwise, enough-1
	for i, n := range v {
		if n > most {
			best, most = categories[i].name, n
		}
	}
	return best
}

// splitWords returns the words of a name or text in lower case, such as list and issues for listIssues or
// list_issues.
func splitWords(text string) []string {
	var spaced strings.Builder
	last := ' '
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			spaced.WriteByte(' ')
		case unicode.IsUpper(r) && unicode.IsLower(last):
			spaced.WriteByte(' ')
			fallthrough
		default:
			spaced.WriteRune(unicode.ToLower(r))
		}
		last = r
	}
	return strings.Fields(spaced.String())
}
