package demo

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"
)

// demoWorld holds the data that all servers share: the employees of Nordlys Instruments, its customers and their
// contacts. So an e-mail address in the calendar is also the address of a contact in the CRM.
type demoWorld struct {
	staff     []worldPerson
	companies []worldCompany
	contacts  []worldPerson // grouped by company
}

type worldPerson struct {
	ID, First, Last, Email, Phone, Title, Country, City, Company string
}

func (p worldPerson) fullName() string { return p.First + " " + p.Last }

// mailName returns the part of the e-mail address before the "@".
func (p worldPerson) mailName() string { h, _, _ := strings.Cut(p.Email, "@"); return h }

type worldCompany struct {
	ID, Name, Domain, Industry, Country, City string
	Employees, Revenue                        int // Revenue is in euros per year
}

const (
	staffCount   = 48
	companyCount = 320
	contactCount = 1600
)

// newSeededRand returns a random source whose seed depends only on purpose.
func newSeededRand(purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(h.Sum64(), 20261102))
}

func pickOne[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// randomBetween returns an integer from low to high, both included.
func randomBetween(r *rand.Rand, low, high int) int { return low + r.IntN(high-low+1) }

// daysAgo returns a random time between 9 and 18 UTC on the day n+1 days before demoToday.
func daysAgo(r *rand.Rand, n int) time.Time {
	return demoToday.AddDate(0, 0, -n-1).Add(time.Duration(r.IntN(9*60)) * time.Minute)
}

func formatDay(t time.Time) string { return t.Format(time.DateOnly) }

func newWorld() *demoWorld {
	w, r := &demoWorld{}, newSeededRand("world")
	for i := range companyCount {
		w.companies = append(w.companies, newCompany(r, i))
	}
	home := worldCompany{Name: "Nordlys Instruments", Domain: "nordlys.example"}
	for i := range staffCount {
		p := newPerson(r, pickOne(r, countries()), home)
		p.ID, p.Title, p.Email = fmt.Sprintf("U%04d", 100+i), staffTitles[i%len(staffTitles)], foldASCII(p.Email)
		w.staff = append(w.staff, p)
	}
	for i := range contactCount {
		c := w.companies[i%companyCount]
		p := newPerson(r, countryNamed(c.Country), c)
		p.ID = fmt.Sprintf("003%06d", 1000+i)
		w.contacts = append(w.contacts, p)
	}
	return w
}

func newCompany(r *rand.Rand, i int) worldCompany {
	land := pickOne(r, countries())
	stem := companyStems[i%len(companyStems)]
	second := companyFields[(i/len(companyStems)+i)%len(companyFields)]
	name := stem + " " + second + " " + pickOne(r, land.legal)
	return worldCompany{
		ID: fmt.Sprintf("001%06d", 1000+i), Name: name, Domain: makeDomain(stem, second, i), Industry: pickOne(r, industries),
		Country: land.name, City: pickOne(r, land.cities), Employees: randomBetween(r, 12, 9000), Revenue: randomBetween(r, 400, 250_000) * 1000,
	}
}

func makeDomain(stem, second string, i int) string {
	name := foldASCII(strings.ToLower(stem + "-" + second))
	if i >= len(companyStems)*len(companyFields)/2 {
		name += fmt.Sprint(i)
	}
	return name + ".example"
}

func newPerson(r *rand.Rand, land worldCountry, c worldCompany) worldPerson {
	p := worldPerson{
		First: pickOne(r, land.first), Last: pickOne(r, land.last), Title: pickOne(r, contactTitles), Country: land.name,
		City: pickOne(r, land.cities), Company: c.Name,
	}
	p.Email = foldASCII(strings.ToLower(p.First+"."+p.Last)) + "@" + c.Domain
	if r.IntN(40) == 0 { // a few people have addresses that are not ASCII
		p.Email = strings.ToLower(p.First+"."+p.Last) + "@" + c.Domain
	}
	p.Phone = makePhone(r, land.phone)
	return p
}

// makePhone replaces every # of a pattern with a digit. The patterns are number ranges reserved for fiction in
// countries that have them.
func makePhone(r *rand.Rand, pattern string) string {
	b := []byte(pattern)
	for i, c := range b {
		if c == '#' {
			b[i] = byte('0' + r.IntN(10))
		}
	}
	return string(b)
}

// foldASCII converts a name to ASCII as its owner would for an e-mail address.
func foldASCII(s string) string { return folder.Replace(s) }

var folder = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ß", "ss", "å", "aa", "ø", "oe", "æ", "ae",
	"é", "e", "è", "e", "ê", "e", "ë", "e", "ç", "c", "ñ", "n", "í", "i", "ó", "o", "á", "a", "ú", "u", "ã", "a", "ô", "o", "ł", "l",
	"ń", "n", "ś", "s", "ż", "z", "ź", "z", "ę", "e", "ą", "a", " ", "", "'", "")

type worldCountry struct {
	name, phone                string
	first, last, cities, legal []string
}

func countryNamed(name string) worldCountry {
	for _, c := range countries() {
		if c.name == name {
			return c
		}
	}
	return countries()[0]
}

func newCountry(name, phone, first, last, cities, legal string) worldCountry {
	return worldCountry{name, phone, strings.Fields(first), strings.Fields(last), strings.Split(cities, ", "), strings.Split(legal, ", ")}
}
