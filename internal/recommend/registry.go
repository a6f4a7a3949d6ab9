package recommend

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
	"retort/internal/pipeline/search/index"
)

// RegistryServer describes a server in a registry. The description comes from the server's author and is not
// verified.
type RegistryServer struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	URL         string `json:"url,omitempty"` // of its source code
}

// RegistryList holds the servers of a registry at the time when they were fetched.
type RegistryList struct {
	Registry string           `json:"registry"`
	Fetched  time.Time        `json:"fetched"`
	Servers  []RegistryServer `json:"servers"`
}

// Bounds on downloads from the registry.
const (
	maxPage        = 8 << 20 // bytes of a page
	maxPages       = 500
	maxServers     = 50_000
	maxText        = 300 // bytes of a name or description
	maxList        = 64 << 20
	fetchPatience  = 2 * time.Minute
	serversPerPage = 100
)

// FetchRegistry requests the list of servers from a registry that uses the format of the MCP registry: GET
// {address}/v0/servers, page by page. It follows no redirects.
func FetchRegistry(ctx context.Context, address string) (*RegistryList, *core.Error) {
	ctx, done := context.WithTimeout(ctx, fetchPatience)
	defer done()
	list := &RegistryList{Registry: address, Fetched: time.Now().UTC(), Servers: []RegistryServer{}}
	known := map[string]bool{}
	cursor := ""
	for range maxPages {
		page, next, failed := fetchPage(ctx, address, cursor)
		if failed != nil {
			return nil, failed
		}
		for _, s := range page {
			if s.Name != "" && !known[s.Name] && len(list.Servers) < maxServers {
				known[s.Name] = true
				list.Servers = append(list.Servers, s)
			}
		}
		if next == "" || next == cursor || len(page) == 0 {
			return list, nil
		}
		cursor = next
	}
	return list, nil
}

func registryError(format string, args ...any) *core.Error {
	return core.Errorf(core.KindUpstreamGone, "recommend.update", format, args...).WithHint(
		"look at recommend.registry in retort.yaml; the list that was fetched before stays in use",
	)
}

// pageOf is one page of a registry's list. It accepts both usual JSON forms: servers with their fields, or each
// server wrapped in an object.
type pageOf struct {
	Servers []struct {
		listedServer
		Server *listedServer `json:"server"`
	} `json:"servers"`
	Metadata struct {
		Next  string `json:"nextCursor"`
		Older string `json:"next_cursor"`
	} `json:"metadata"`
}

type listedServer struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Repository  struct {
		URL string `json:"url"`
	} `json:"repository"`
}

func fetchPage(ctx context.Context, address, cursor string) ([]RegistryServer, string, *core.Error) {
	query := url.Values{"limit": {strconv.Itoa(serversPerPage)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(address, "/")+"/v0/servers?"+query.Encode(), nil)
	if err != nil {
		return nil, "", registryError("the request to the registry cannot be created: %v", err)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, "", registryError("the registry cannot be reached: %v", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, "", registryError("the registry answered with HTTP %d", resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	if err != nil || len(text) > maxPage {
		return nil, "", registryError("a page of the registry cannot be read, or exceeds %d MB", maxPage>>20)
	}
	var page pageOf
	if err := json.Unmarshal(text, &page); err != nil {
		return nil, "", registryError("the answer of the registry is not the expected JSON: %v", err)
	}
	var servers []RegistryServer
	for _, s := range page.Servers {
		one := s.listedServer
		if s.Server != nil {
			one = *s.Server
		}
		servers = append(servers, RegistryServer{plainText(one.Name), plainText(one.Description), plainText(one.Repository.URL)})
	}
	next := page.Metadata.Next
	if next == "" {
		next = page.Metadata.Older
	}
	return servers, next, nil
}

// plainText returns a text from a registry on one line, shortened and safe to display.
func plainText(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return core.LegibleLine(s)
}

// SaveFile writes the list to a file atomically.
func (l *RegistryList) SaveFile(path string) *core.Error {
	text, err := json.Marshal(l)
	if err == nil {
		err = seal.ReplaceFile(path, text)
	}
	if err != nil {
		return core.Errorf(core.KindInternal, "recommend.update", "the list of the registry cannot be stored: %w", err)
	}
	return nil
}

// LoadRegistry reads a list that SaveFile has written. It returns nil if the file does not exist.
func LoadRegistry(path string) (*RegistryList, *core.Error) {
	text, err := seal.ReadFile(path, maxList)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var l RegistryList
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		return nil, core.Errorf(
			core.KindInvalidArguments, "recommend", "the list of the registry cannot be read: %w", err,
		).WithHint("fetch it again with retort recommend --update")
	}
	return &l, nil
}

// newFinder returns a function that finds the servers for a query. A server is found if its texts contain at least
// half of the query's words.
func (l *RegistryList) newFinder() func(query string) []RegistryServer {
	if l == nil || len(l.Servers) == 0 {
		return func(string) []RegistryServer { return nil }
	}
	servers, byName := []*core.ToolServer{}, map[string]RegistryServer{}
	for _, s := range slices.SortedFunc(slices.Values(l.Servers), func(a, b RegistryServer) int { return strings.Compare(a.Name, b.Name) }) {
		byName[s.Name] = s
		servers = append(servers, &core.ToolServer{Name: s.Name, Tools: []*core.Tool{{Server: s.Name, Name: s.Name, Description: s.Description}}})
	}
	x := index.New()
	x.UpdateTools(core.NewToolset(servers))
	return func(query string) (found []RegistryServer) {
		hits, _ := x.Search(query, index.SearchFilter{}, 10)
		for _, h := range hits {
			if s := byName[h.Tool.Server]; len(found) < maxOffered && matchesQuery(s, query) {
				found = append(found, s)
			}
		}
		return found
	}
}

func matchesQuery(s RegistryServer, query string) bool {
	text, words, there := strings.ToLower(s.Name+" "+s.Description), 0, 0
	for _, word := range strings.Fields(strings.ToLower(query)) {
		if len(word) < 3 {
			continue
		}
		words++
		if strings.Contains(text, strings.TrimSuffix(word, "s")) {
			there++
		}
	}
	return there > 0 && 2*there >= words
}
