package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// workloads lists the tasks that are measured. Each has Go code that plays a model which does the task by direct
// calls, without code execution. This code calls the same tools as the programs do, and uses them well: it filters
// where a tool can filter, and makes up to twenty independent calls in one turn.
var workloads = []workloadTask{
	{
		name:    "copy a transcript",
		task:    "Copy the transcript in document abc123 of the drive into the notes of the sales meeting 00Q5f000001abcXYZ in the CRM.",
		servers: []string{"drive", "crm"}, queries: []string{"read the content of a document", "update a CRM record"},
		programs: []string{"1-transcript"}, direct: copyTranscript,
	},
	{
		name:    "10,000 rows",
		task:    "What is the median amount of an order in each region? The orders are in the sheet Orders of the spreadsheet orders-2026.",
		servers: []string{"sheets"}, queries: []string{"read rows of a sheet"}, programs: []string{"2-rows"}, direct: computeMedians,
	},
	{
		name:    "1,000 conditional updates",
		task:    "Triage all open leads by score: from 70 on Working, from 15 on Nurturing, else Disqualified. Nobody else's change may be overwritten.",
		servers: []string{"crm"}, queries: []string{"search CRM records", "update a CRM record"},
		programs: []string{"3-leads"}, direct: triageLeads,
	},
	{
		name: "100 files", task: "Which five of the first hundred ingest logs of 2026 below logs/ have the most lines with ERROR?",
		servers: []string{"files"}, queries: []string{"search files by name", "read several files"},
		programs: []string{"4-files"}, direct: errorLines,
	},
	{
		name: "polling", task: "Wait until the deployment in the channel deployments is complete and say how many pods are ready.",
		servers: []string{"chat"}, queries: []string{"messages of a chat channel"}, programs: []string{"5-deployment"}, direct: waitForDeployment,
	},
	{
		name:     "four servers joined",
		task:     "For the sales meetings of the week of November 2 with customers that the CRM knows: the open EUR pipeline, unread mails and open issues of each; the five with the largest pipeline.",
		servers:  []string{"calendar", "crm", "mail", "issues"},
		queries:  []string{"list calendar events", "search CRM records", "search mail messages", "search issues"},
		programs: []string{"6-meetings"}, direct: prepareMeetings,
	},
	{
		name:    "budget reconciliation",
		task:    "Hold the targets in the sheet Targets of orders-2026 against the EUR deals won in 2026: how many regions and quarters fall short, and the three largest gaps.",
		servers: []string{"sheets", "crm"}, queries: []string{"read rows of a sheet", "search CRM records"},
		programs: []string{"7-budget"}, direct: reconcileOrders,
	},
	{
		name: "one trivial call", task: "How many bytes has the file abc123 on the drive?",
		servers: []string{"drive"}, queries: []string{"metadata of a file on the drive"}, call: &trivial, pick: sizeOf, direct: fileSize,
	},
	{
		name: "first program wrong", task: "How many open leads are there in each region: EMEA, North America, LATAM and APAC?",
		servers: []string{"crm"}, queries: []string{"search CRM records"}, programs: []string{"9-regions-wrong", "9-regions"}, direct: countLeads,
	},
}

type jsonObject = map[string]any

func whereClause(field, op string, value any) jsonObject {
	return jsonObject{"field": field, "op": op, "value": value}
}

func copyTranscript(a *directAgent) (any, error) {
	var doc struct{ Content string }
	if err := a.callOne(&doc, "drive__get_document", jsonObject{"documentId": "abc123"}); err != nil {
		return nil, err
	}
	var saved struct {
		Version int `json:"version"`
	}
	return &saved, a.callOne(
		&saved, "crm__update_record",
		jsonObject{"objectType": "SalesMeeting", "recordId": "00Q5f000001abcXYZ", "data": jsonObject{"Notes": doc.Content}},
	)
}

func computeMedians(a *directAgent) (any, error) {
	var sheet struct {
		Rows []struct {
			Region string
			Amount float64
		}
	}
	if err := a.callOne(
		&sheet, "sheets__read_rows", jsonObject{"spreadsheetId": "orders-2026", "sheet": "Orders", "limit": 10000},
	); err != nil {
		return nil, err
	}
	amounts := map[string][]float64{}
	for _, r := range sheet.Rows {
		amounts[r.Region] = append(amounts[r.Region], r.Amount)
	}
	var answer []jsonObject
	for region, all := range amounts {
		slices.Sort(all)
		answer = append(answer, jsonObject{"region": region, "orders": len(all), "median": all[len(all)/2]})
	}
	slices.SortFunc(answer, func(x, y jsonObject) int { return cmp.Compare(x["region"].(string), y["region"].(string)) })
	return answer, nil
}

type salesLead struct {
	ID      string `json:"Id"`
	Version int
	Score   int
}

func triageLeads(a *directAgent) (any, error) {
	var leads []salesLead
	for more := true; more; {
		var page struct {
			Records []salesLead
			HasMore bool
		}
		err := a.callOne(
			&page, "crm__search_records",
			jsonObject{
				"objectType": "Lead", "filters": []jsonObject{whereClause("Status", "eq", "Open")},
				"fields": []string{"Version", "Score"}, "limit": 500, "offset": len(leads),
			},
		)
		if err != nil {
			return nil, err
		}
		leads, more = append(leads, page.Records...), page.HasMore
	}
	changed := map[string]int{}
	var updates []agentCall
	for _, l := range leads {
		status := "Disqualified"
		if l.Score >= 70 {
			status = "Working"
		} else if l.Score >= 15 {
			status = "Nurturing"
		}
		changed[status]++
		updates = append(updates, agentCall{
			"crm__update_record",
			jsonObject{"objectType": "Lead", "recordId": l.ID, "data": jsonObject{"Status": status}, "ifVersion": l.Version},
		})
	}
	_, err := a.callAll(updates...)
	return changed, err
}

func errorLines(a *directAgent) (any, error) {
	var found struct{ Paths []string }
	if err := a.callOne(&found, "files__search_files", jsonObject{"path": "logs/2026", "pattern": "ingest-*.log"}); err != nil {
		return nil, err
	}
	var logs []string
	if err := a.callOne(&logs, "files__read_multiple_files", jsonObject{"paths": found.Paths[:100]}); err != nil {
		return nil, err
	}
	type counted struct {
		File   string `json:"file"`
		Errors int    `json:"errors"`
	}
	var all []counted
	for _, text := range logs {
		name, lines, _ := strings.Cut(text, ":\n")
		all = append(all, counted{name, strings.Count(lines, " ERROR ")})
	}
	slices.SortFunc(all, func(x, y counted) int { return cmp.Or(cmp.Compare(y.Errors, x.Errors), cmp.Compare(x.File, y.File)) })
	return all[:min(5, len(all))], nil
}

var pods = regexp.MustCompile(`\d+ of \d+`)

func waitForDeployment(a *directAgent) (any, error) {
	for look := 1; look <= 50; look++ {
		var channel struct{ Messages []struct{ Text string } }
		if err := a.callOne(&channel, "chat__get_channel_history", jsonObject{"channel": "deployments", "limit": 1}); err != nil {
			return nil, err
		}
		if text := channel.Messages[0].Text; strings.Contains(text, "deployment complete") {
			return jsonObject{"looks": look, "pods": pods.FindString(text)}, nil
		}
	}
	return nil, fmt.Errorf("the deployment is not done after 50 looks")
}

type upcomingMeeting struct {
	ID        string
	Summary   string
	Attendees []struct{ Email string }
}

// externalGuest returns the first attendee from outside the company.
func (m upcomingMeeting) externalGuest() string {
	for _, p := range m.Attendees {
		if !strings.HasSuffix(p.Email, "@nordlys.example") {
			return p.Email
		}
	}
	return ""
}

func prepareMeetings(a *directAgent) (any, error) {
	var week struct{ Items []upcomingMeeting }
	if err := a.callOne(
		&week, "calendar__list_events",
		jsonObject{"calendarId": "sales", "timeMin": "2026-11-02T00:00:00Z", "timeMax": "2026-11-09T00:00:00Z", "maxResults": 250},
	); err != nil {
		return nil, err
	}
	meetings := slices.DeleteFunc(week.Items, func(m upcomingMeeting) bool { return m.externalGuest() == "" })
	var lookups []agentCall
	for _, m := range meetings {
		lookups = append(lookups, agentCall{
			"crm__search_records",
			jsonObject{
				"objectType": "Contact", "filters": []jsonObject{whereClause("Email", "eq", m.externalGuest())},
				"fields": []string{"AccountId"}, "limit": 1,
			},
		})
	}
	contacts, err := a.callAll(lookups...)
	if err != nil {
		return nil, err
	}
	var details []agentCall
	var known []upcomingMeeting
	for i, m := range meetings {
		var found struct{ Records []struct{ AccountID string } }
		if err := contacts[i].decodeInto(&found); err != nil {
			return nil, err
		}
		if len(found.Records) > 0 {
			known, details = append(known, m), append(details, detailsOf(m, found.Records[0].AccountID)...)
		}
	}
	answers, err := a.callAll(details...)
	if err != nil {
		return nil, err
	}
	return buildBriefings(known, answers)
}

func detailsOf(m upcomingMeeting, account string) []agentCall {
	words := strings.Fields(m.Summary)
	return []agentCall{
		{"crm__search_records", jsonObject{"objectType": "Deal", "fields": []string{"Amount"}, "filters": []jsonObject{
			whereClause("AccountId", "eq", account), whereClause("Probability", "in", []int{10, 25, 50, 75}),
			whereClause("Currency", "eq", "EUR")}}},
		{"mail__search_messages", jsonObject{"query": "is:unread from:" + m.externalGuest()}},
		{
			"issues__search_issues",
			jsonObject{"query": "is:open is:issue " + strings.Join(words[min(2, len(words)):min(4, len(words))], " "), "per_page": 1},
		},
	}
}

type meetingBriefing struct {
	Event    string  `json:"event"`
	Pipeline float64 `json:"pipeline"`
	Unread   int     `json:"unread"`
	Issues   int     `json:"issues"`
}

func buildBriefings(meetings []upcomingMeeting, answers []toolAnswer) (any, error) {
	var all []meetingBriefing
	for i, m := range meetings {
		var deals struct{ Records []struct{ Amount float64 } }
		var mails struct{ ResultSizeEstimate int }
		var issues struct {
			Total int `json:"total_count"`
		}
		for j, out := range []any{&deals, &mails, &issues} {
			if err := answers[3*i+j].decodeInto(out); err != nil {
				return nil, err
			}
		}
		b := meetingBriefing{Event: m.ID, Unread: mails.ResultSizeEstimate, Issues: issues.Total}
		for _, d := range deals.Records {
			b.Pipeline += d.Amount
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(x, y meetingBriefing) int {
		return cmp.Or(cmp.Compare(y.Pipeline, x.Pipeline), cmp.Compare(x.Event, y.Event))
	})
	return all[:min(5, len(all))], nil
}

type stockGap struct {
	Region  string  `json:"region"`
	Quarter string  `json:"quarter"`
	Gap     float64 `json:"gap"`
}

func reconcileOrders(a *directAgent) (any, error) {
	answers, err := a.callAll(
		agentCall{"sheets__read_rows", jsonObject{"spreadsheetId": "orders-2026", "sheet": "Targets"}},
		agentCall{"crm__search_records", jsonObject{"objectType": "Deal", "fields": []string{
			"Amount", "Region", "CloseDate",
		}, "limit": 500, "filters": []jsonObject{
			whereClause("Stage", "eq", "Closed Won"), whereClause("Currency", "eq", "EUR"),
			whereClause("CloseDate", "gte", "2026-01-01"), whereClause("CloseDate", "lte", "2026-12-31")}}})
	if err != nil {
		return nil, err
	}
	var targets struct {
		Rows []struct {
			Region, Quarter string
			Target          float64
		}
	}
	var deals struct {
		Records []struct {
			Amount            float64
			Region, CloseDate string
		}
	}
	if err := cmp.Or(answers[0].decodeInto(&targets), answers[1].decodeInto(&deals)); err != nil {
		return nil, err
	}
	won := map[string]float64{}
	for _, d := range deals.Records {
		month := int(d.CloseDate[5]-'0')*10 + int(d.CloseDate[6]-'0')
		won[fmt.Sprintf("%s 2026-Q%d", d.Region, (month+2)/3)] += d.Amount
	}
	var gaps []stockGap
	short := 0
	for _, t := range targets.Rows {
		g := stockGap{t.Region, t.Quarter, t.Target - won[t.Region+" "+t.Quarter]}
		if g.Gap > 0 {
			short++
		}
		gaps = append(gaps, g)
	}
	slices.SortStableFunc(gaps, func(x, y stockGap) int { return cmp.Compare(y.Gap, x.Gap) })
	return jsonObject{"short": short, "largest": gaps[:3]}, nil
}

var trivial = agentCall{"drive__get_file_metadata", jsonObject{"fileId": "abc123"}}

func sizeOf(answer json.RawMessage) (any, error) {
	var file struct {
		Size int `json:"size"`
	}
	return &file, json.Unmarshal(answer, &file)
}

func fileSize(a *directAgent) (any, error) {
	answers, err := a.callAll(trivial)
	if err != nil {
		return nil, err
	}
	return sizeOf(answers[0].value)
}

// countLeads plays a model that counts leads. It first makes its calls with an argument that does not exist, and then
// repeats them correctly. The first program of this workload makes the same mistake.
func countLeads(a *directAgent) (any, error) {
	regions := []string{"EMEA", "North America", "LATAM", "APAC"}
	counts := map[string]int{}
	for _, argument := range []string{"object", "objectType"} {
		var calls []agentCall
		for _, region := range regions {
			calls = append(calls, agentCall{
				"crm__search_records",
				jsonObject{
					argument: "Lead", "limit": 1,
					"filters": []jsonObject{whereClause("Status", "eq", "Open"), whereClause("Region", "eq", region)},
				},
			})
		}
		answers, err := a.callAll(calls...)
		if err != nil {
			return nil, err
		}
		for i, region := range regions {
			var page struct{ Total int }
			if argument == "objectType" {
				if err := answers[i].decodeInto(&page); err != nil {
					return nil, err
				}
			}
			counts[region] = page.Total
		}
	}
	return counts, nil
}
