package demo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	leadCount      = 2400
	openLeads      = 1000 // number of leads that nobody has worked on
	dealCount      = 1100
	meetingCount   = 600
	knownMeeting   = "00Q5f000001abcXYZ" // ID of the sales meeting that has no transcript yet
	leadOpenStatus = "Open"
)

var (
	leadStatuses = []string{leadOpenStatus, "Working", "Nurturing", "Qualified", "Disqualified"}
	leadSources  = []string{"Web", "Trade fair", "Referral", "Partner", "Cold call", "Webinar"}
	dealStages   = []string{"Prospecting", "Qualification", "Proposal", "Negotiation", "Closed Won", "Closed Lost"}
	meetingTypes = []string{"Discovery", "Demo", "Negotiation", "Review"}
)

func newCRM(b *serverBase) *crmServer {
	c := &crmServer{serverBase: b, w: newWorld()}
	c.objects = []*dataTable{c.makeAccounts(), c.contactTable(), c.makeLeads(), c.makeDeals(), c.makeMeetings()}
	return c
}

// newObjectTable makes an empty table with the fields that every record has.
func newObjectTable(name string, cols ...tableColumn) *dataTable {
	head := []tableColumn{{name: "Id", kind: textKind, fixed: true}, {name: "Version", kind: integerKind, fixed: true}}
	return &dataTable{name: name, cols: append(head, cols...)}
}

func (t *dataTable) addRow(id string, values ...any) {
	t.rows = append(t.rows, append([]any{id, int64(1)}, values...))
}

func (c *crmServer) randomOwner(r *rand.Rand) string { return c.w.staff[r.IntN(12)].ID }

func (c *crmServer) makeAccounts() *dataTable {
	t := newObjectTable("Account", tableColumn{name: "Name", kind: textKind}, tableColumn{name: "Domain", kind: textKind}, tableColumn{
		name: "Industry", kind: textKind, options: industries,
	},
		tableColumn{name: "Country", kind: textKind}, tableColumn{name: "City", kind: textKind}, tableColumn{
			name: "Employees", kind: integerKind,
		},
		tableColumn{name: "AnnualRevenue", kind: integerKind}, tableColumn{name: "OwnerId", kind: textKind})
	r := newSeededRand("accounts")
	for _, x := range c.w.companies {
		t.addRow(x.ID, x.Name, x.Domain, x.Industry, x.Country, x.City, int64(x.Employees), int64(x.Revenue), c.randomOwner(r))
	}
	return t
}

func (c *crmServer) contactTable() *dataTable {
	t := newObjectTable("Contact", tableColumn{
		name: "FirstName", kind: textKind,
	}, tableColumn{name: "LastName", kind: textKind}, tableColumn{name: "Email", kind: textKind},
		tableColumn{name: "Phone", kind: textKind}, tableColumn{name: "Title", kind: textKind}, tableColumn{name: "AccountId", kind: textKind},
		tableColumn{name: "DoNotCall", kind: booleanKind}, tableColumn{name: "LastContacted", kind: dateKind})
	r := newSeededRand("contacts")
	for i, p := range c.w.contacts {
		t.addRow(
			p.ID, p.First, p.Last, p.Email, p.Phone, p.Title, c.w.companies[i%companyCount].ID, r.IntN(20) == 0,
			formatDay(daysAgo(r, r.IntN(400))),
		)
	}
	return t
}

func (c *crmServer) makeLeads() *dataTable {
	t := newObjectTable("Lead", tableColumn{
		name: "FirstName", kind: textKind,
	}, tableColumn{name: "LastName", kind: textKind}, tableColumn{name: "Email", kind: textKind},
		tableColumn{name: "Phone", kind: textKind}, tableColumn{name: "Company", kind: textKind}, tableColumn{name: "Title", kind: textKind},
		tableColumn{name: "Country", kind: textKind}, tableColumn{name: "Region", kind: textKind, options: regions},
		tableColumn{name: "Source", kind: textKind, options: leadSources}, tableColumn{name: "Status", kind: textKind, options: leadStatuses},
		tableColumn{name: "Score", kind: integerKind}, tableColumn{
			name: "LastActivity", kind: dateKind,
		}, tableColumn{name: "OwnerId", kind: textKind},
		tableColumn{name: "Notes", kind: textKind}, tableColumn{name: "CreatedDate", kind: datetimeKind, fixed: true})
	r := newSeededRand("leads")
	open := r.Perm(leadCount)[:openLeads]
	slices.Sort(open)
	for i := range leadCount {
		status := leadStatuses[1+r.IntN(len(leadStatuses)-1)]
		if _, isOpen := slices.BinarySearch(open, i); isOpen {
			status = leadOpenStatus
		}
		land := pickOne(r, countries())
		p := newPerson(r, land, newCompany(r, companyCount+i))
		created := daysAgo(r, randomBetween(r, 30, 500))
		t.addRow(fmt.Sprintf(
			"00Q%06d", 1000+i,
		), p.First, p.Last, p.Email, p.Phone, p.Company, p.Title, p.Country, regionOf(p.Country), pickOne(r, leadSources), status,
			int64(r.IntN(101)), formatDay(created.AddDate(0, 0, r.IntN(30))), c.randomOwner(r), nil, created.Format(time.RFC3339))
	}
	return t
}

func (c *crmServer) makeDeals() *dataTable {
	t := newObjectTable("Deal", tableColumn{name: "Name", kind: textKind}, tableColumn{name: "AccountId", kind: textKind}, tableColumn{
		name: "Stage", kind: textKind, options: dealStages,
	},
		tableColumn{name: "Amount", kind: decimalKind}, tableColumn{name: "Currency", kind: textKind, options: []string{"EUR", "USD", "GBP"}},
		tableColumn{name: "Probability", kind: integerKind}, tableColumn{name: "CloseDate", kind: dateKind}, tableColumn{
			name: "Region", kind: textKind, options: regions,
		},
		tableColumn{name: "OwnerId", kind: textKind}, tableColumn{name: "NextStep", kind: textKind})
	r := newSeededRand("deals")
	for i := range dealCount {
		x := pickOne(r, c.w.companies)
		stage := r.IntN(len(dealStages))
		closing := demoToday.AddDate(0, 0, randomBetween(r, 1, 180))
		if stage >= 4 {
			closing = demoToday.AddDate(0, 0, -randomBetween(r, 1, 360))
		}
		t.addRow(fmt.Sprintf("006%06d", 1000+i), x.Name+", "+pickOne(r, articleCatalogue()).name, x.ID, dealStages[stage], float64(
			randomBetween(r, 20, 4800),
		)*50,
			pickOne(r, []string{"EUR", "EUR", "USD", "GBP"}), int64(
				[]int{10, 25, 50, 75, 100, 0}[stage],
			), formatDay(closing), regionOf(x.Country), c.randomOwner(r),
			pickOne(r, []any{nil, "Send offer", "Call procurement", "Demo on site", "Legal review"}))
	}
	return t
}

func (c *crmServer) makeMeetings() *dataTable {
	t := newObjectTable("SalesMeeting", tableColumn{name: "Subject", kind: textKind}, tableColumn{name: "AccountId", kind: textKind},
		tableColumn{name: "Type", kind: textKind, options: meetingTypes},
		tableColumn{
			name: "StartsAt", kind: datetimeKind,
		}, tableColumn{name: "OwnerId", kind: textKind}, tableColumn{name: "Notes", kind: textKind})
	r := newSeededRand("meetings")
	for i := range meetingCount {
		id := fmt.Sprintf("00Q5f%06dmtg", i)
		if i == 0 {
			id = knownMeeting
		}
		x := c.w.companies[i%companyCount]
		t.addRow(id, "Meeting with "+x.Name, x.ID, pickOne(r, meetingTypes), daysAgo(r, r.IntN(200)).Format(time.RFC3339), c.randomOwner(r), nil)
	}
	return t
}
