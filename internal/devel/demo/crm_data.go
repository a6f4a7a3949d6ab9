package demo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	leadCount      = 2400
	openLeads      = 1000 // leads nobody has worked on
	dealCount      = 1100
	meetingCount   = 600
	knownMeeting   = "00Q5f000001abcXYZ" // the sales meeting that is waiting for its transcript
	leadOpenStatus = "Open"
)

var (
	leadStatuses = []string{leadOpenStatus, "Working", "Nurturing", "Qualified", "Disqualified"}
	leadSources  = []string{"Web", "Trade fair", "Referral", "Partner", "Cold call", "Webinar"}
	dealStages   = []string{"Prospecting", "Qualification", "Proposal", "Negotiation", "Closed Won", "Closed Lost"}
	meetingTypes = []string{"Discovery", "Demo", "Negotiation", "Review"}
)

func newCRM(b *base) *crm {
	c := &crm{base: b, w: newWorld()}
	c.objects = []*table{c.accounts(), c.contactTable(), c.leads(), c.deals(), c.meetings()}
	return c
}

// object makes an empty table with the fields that every record has.
func object(name string, cols ...column) *table {
	head := []column{{name: "Id", kind: textKind, fixed: true}, {name: "Version", kind: integerKind, fixed: true}}
	return &table{name: name, cols: append(head, cols...)}
}

func (t *table) add(id string, values ...any) {
	t.rows = append(t.rows, append([]any{id, int64(1)}, values...))
}

func (c *crm) owner(r *rand.Rand) string { return c.w.staff[r.IntN(12)].ID }

func (c *crm) accounts() *table {
	t := object("Account", column{name: "Name", kind: textKind}, column{name: "Domain", kind: textKind}, column{name: "Industry", kind: textKind, options: industries},
		column{name: "Country", kind: textKind}, column{name: "City", kind: textKind}, column{name: "Employees", kind: integerKind},
		column{name: "AnnualRevenue", kind: integerKind}, column{name: "OwnerId", kind: textKind})
	r := seeded("accounts")
	for _, x := range c.w.companies {
		t.add(x.ID, x.Name, x.Domain, x.Industry, x.Country, x.City, int64(x.Employees), int64(x.Revenue), c.owner(r))
	}
	return t
}

func (c *crm) contactTable() *table {
	t := object("Contact", column{name: "FirstName", kind: textKind}, column{name: "LastName", kind: textKind}, column{name: "Email", kind: textKind},
		column{name: "Phone", kind: textKind}, column{name: "Title", kind: textKind}, column{name: "AccountId", kind: textKind},
		column{name: "DoNotCall", kind: booleanKind}, column{name: "LastContacted", kind: dateKind})
	r := seeded("contacts")
	for i, p := range c.w.contacts {
		t.add(p.ID, p.First, p.Last, p.Email, p.Phone, p.Title, c.w.companies[i%companyCount].ID, r.IntN(20) == 0, day(daysAgo(r, r.IntN(400))))
	}
	return t
}

func (c *crm) leads() *table {
	t := object("Lead", column{name: "FirstName", kind: textKind}, column{name: "LastName", kind: textKind}, column{name: "Email", kind: textKind},
		column{name: "Phone", kind: textKind}, column{name: "Company", kind: textKind}, column{name: "Title", kind: textKind},
		column{name: "Country", kind: textKind}, column{name: "Region", kind: textKind, options: regions},
		column{name: "Source", kind: textKind, options: leadSources}, column{name: "Status", kind: textKind, options: leadStatuses},
		column{name: "Score", kind: integerKind}, column{name: "LastActivity", kind: dateKind}, column{name: "OwnerId", kind: textKind},
		column{name: "Notes", kind: textKind}, column{name: "CreatedDate", kind: datetimeKind, fixed: true})
	r := seeded("leads")
	open := r.Perm(leadCount)[:openLeads]
	slices.Sort(open)
	for i := range leadCount {
		status := leadStatuses[1+r.IntN(len(leadStatuses)-1)]
		if _, isOpen := slices.BinarySearch(open, i); isOpen {
			status = leadOpenStatus
		}
		land := pick(r, countries())
		p := newPerson(r, land, newCompany(r, companyCount+i))
		created := daysAgo(r, between(r, 30, 500))
		t.add(fmt.Sprintf("00Q%06d", 1000+i), p.First, p.Last, p.Email, p.Phone, p.Company, p.Title, p.Country, regionOf(p.Country), pick(r, leadSources), status,
			int64(r.IntN(101)), day(created.AddDate(0, 0, r.IntN(30))), c.owner(r), nil, created.Format(time.RFC3339))
	}
	return t
}

func (c *crm) deals() *table {
	t := object("Deal", column{name: "Name", kind: textKind}, column{name: "AccountId", kind: textKind}, column{name: "Stage", kind: textKind, options: dealStages},
		column{name: "Amount", kind: decimalKind}, column{name: "Currency", kind: textKind, options: []string{"EUR", "USD", "GBP"}},
		column{name: "Probability", kind: integerKind}, column{name: "CloseDate", kind: dateKind}, column{name: "Region", kind: textKind, options: regions},
		column{name: "OwnerId", kind: textKind}, column{name: "NextStep", kind: textKind})
	r := seeded("deals")
	for i := range dealCount {
		x := pick(r, c.w.companies)
		stage := r.IntN(len(dealStages))
		closing := now.AddDate(0, 0, between(r, 1, 180))
		if stage >= 4 {
			closing = now.AddDate(0, 0, -between(r, 1, 360))
		}
		t.add(fmt.Sprintf("006%06d", 1000+i), x.Name+", "+pick(r, catalogue()).name, x.ID, dealStages[stage], float64(between(r, 20, 4800))*50,
			pick(r, []string{"EUR", "EUR", "USD", "GBP"}), int64([]int{10, 25, 50, 75, 100, 0}[stage]), day(closing), regionOf(x.Country), c.owner(r),
			pick(r, []any{nil, "Send offer", "Call procurement", "Demo on site", "Legal review"}))
	}
	return t
}

func (c *crm) meetings() *table {
	t := object("SalesMeeting", column{name: "Subject", kind: textKind}, column{name: "AccountId", kind: textKind},
		column{name: "Type", kind: textKind, options: meetingTypes},
		column{name: "StartsAt", kind: datetimeKind}, column{name: "OwnerId", kind: textKind}, column{name: "Notes", kind: textKind})
	r := seeded("meetings")
	for i := range meetingCount {
		id := fmt.Sprintf("00Q5f%06dmtg", i)
		if i == 0 {
			id = knownMeeting
		}
		x := c.w.companies[i%companyCount]
		t.add(id, "Meeting with "+x.Name, x.ID, pick(r, meetingTypes), daysAgo(r, r.IntN(200)).Format(time.RFC3339), c.owner(r), nil)
	}
	return t
}
