package demo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const eventCount = 3600

type calendar struct {
	*base
	w      *world
	lists  []calendarList
	events []*event // by start
}

type calendarList struct {
	ID      string `json:"id"`
	Summary string `json:"summary"`
	Zone    string `json:"timeZone"`
	Role    string `json:"accessRole"`
}

type moment struct {
	DateTime string `json:"dateTime,omitempty"` // RFC 3339
	Date     string `json:"date,omitempty"`     // for whole days
	Zone     string `json:"timeZone,omitempty"`
}

// time returns the instant. Whole days begin at midnight UTC.
func (m moment) time() (time.Time, error) {
	if m.DateTime != "" {
		return time.Parse(time.RFC3339, m.DateTime)
	}
	return time.Parse(time.DateOnly, m.Date)
}

type attendee struct {
	Email    string `json:"email"`
	Name     string `json:"displayName,omitempty"`
	Response string `json:"responseStatus"`
	Optional bool   `json:"optional,omitempty"`
}

type event struct {
	ID         string     `json:"id"`
	CalendarID string     `json:"calendarId"`
	Status     string     `json:"status"`
	Summary    string     `json:"summary"`
	Location   string     `json:"location,omitempty"`
	Start      moment     `json:"start"`
	End        moment     `json:"end"`
	Organizer  string     `json:"organizer"`
	Attendees  []attendee `json:"attendees"`
	Version    int        `json:"sequence"`

	from, to time.Time
}

func buildCalendar(b *base) map[string]tool {
	c := &calendar{base: b, w: newWorld()}
	c.fill()
	return map[string]tool{
		"list_calendars":    read(c.listCalendars),
		"list_events":       read(c.listEvents),
		"get_event":         read(c.get),
		"find_free_slots":   read(c.freeSlots),
		"list_changes":      read(c.changes),
		"create_event":      write(c.create),
		"update_event":      write(c.update),
		"respond_to_invite": write(c.respond),
		"delete_event":      write(c.remove),
	}
}

func (c *calendar) fill() {
	c.lists = []calendarList{{"primary", c.w.staff[0].name(), "Europe/Oslo", "owner"}, {"sales", "Sales team", "Europe/Oslo", "writer"},
		{"holidays", "Public holidays", "Europe/Oslo", "reader"}}
	r := seeded("calendar")
	subjects := []string{"Demo for ", "Quarterly review ", "Contract talk ", "Site visit ", "Kick-off ", "Support call "}
	for i := range eventCount {
		contact := pick(r, c.w.contacts)
		start := now.AddDate(0, 0, between(r, -180, 60)).Truncate(24 * time.Hour).Add(time.Duration(between(r, 16, 34)) * 30 * time.Minute)
		for start.Weekday() == time.Saturday || start.Weekday() == time.Sunday {
			start = start.AddDate(0, 0, 1)
		}
		e := &event{ID: fmt.Sprintf("evt%05d", 10_000+i), CalendarID: pick(r, []string{"primary", "sales", "sales"}), Status: "confirmed",
			Summary: pick(r, subjects) + contact.Company, Location: pick(r, []string{"", "Online", contact.City}), Organizer: pick(r, c.w.staff[:12]).Email,
			Attendees: []attendee{{Email: contact.Email, Name: contact.name(), Response: pick(r, []string{"accepted", "tentative", "needsAction", "declined"})}}}
		for range r.IntN(3) {
			p := pick(r, c.w.staff)
			e.Attendees = append(e.Attendees, attendee{p.Email, p.name(), "accepted", r.IntN(4) == 0})
		}
		e.set(start, start.Add(time.Duration(between(r, 1, 4))*30*time.Minute))
		c.events = append(c.events, e)
	}
	for _, d := range []string{"2026-12-25", "2026-12-26", "2027-01-01"} {
		e := &event{ID: "hol" + d, CalendarID: "holidays", Status: "confirmed", Summary: "Public holiday", Start: moment{Date: d},
			Organizer: "holidays@nordlys.example", Attendees: []attendee{}}
		e.from, _ = e.Start.time()
		e.to = e.from.AddDate(0, 0, 1)
		e.End = moment{Date: day(e.to)}
		c.events = append(c.events, e)
	}
	c.sort()
}

func (e *event) set(from, to time.Time) {
	e.from, e.to = from, to
	e.Start, e.End = moment{DateTime: from.Format(time.RFC3339)}, moment{DateTime: to.Format(time.RFC3339)}
}

func (c *calendar) sort() {
	slices.SortStableFunc(c.events, func(a, b *event) int { return cmp.Or(a.from.Compare(b.from), strings.Compare(a.ID, b.ID)) })
}

func (c *calendar) list(id string) (calendarList, error) {
	i := slices.IndexFunc(c.lists, func(l calendarList) bool { return l.ID == id })
	if i < 0 {
		return calendarList{}, c.missing("calendar", id)
	}
	return c.lists[i], nil
}

func (c *calendar) find(id string) (*event, error) {
	i := slices.IndexFunc(c.events, func(e *event) bool { return e.ID == id })
	if i < 0 {
		return nil, c.missing("event", id)
	}
	return c.events[i], nil
}

// editable finds an event that the account may change.
func (c *calendar) editable(id string) (*event, error) {
	e, err := c.find(id)
	if err != nil {
		return nil, err
	}
	if list, err := c.list(e.CalendarID); err != nil || list.Role == "reader" {
		return nil, fmt.Errorf("403 Permission denied: the calendar '%s' is read-only", e.CalendarID)
	}
	return e, nil
}

func (c *calendar) listCalendars(struct{}) (result, error) { return jsonText(c.lists) }

func (c *calendar) listEvents(in struct {
	CalendarID string    `json:"calendarId"`
	TimeMin    time.Time `json:"timeMin"`
	TimeMax    time.Time `json:"timeMax"`
	Query      string    `json:"q"`
	Attendee   string    `json:"attendee"`
	MaxResults int       `json:"maxResults"`
	PageToken  string    `json:"pageToken"`
}) (result, error) {
	id := or(in.CalendarID, "primary")
	if _, err := c.list(id); err != nil {
		return result{}, err
	}
	var found []*event
	for _, e := range c.events {
		inTime := e.to.After(in.TimeMin) && (in.TimeMax.IsZero() || e.from.Before(in.TimeMax))
		invited := in.Attendee == "" || slices.ContainsFunc(e.Attendees, func(a attendee) bool { return a.Email == in.Attendee })
		if e.CalendarID == id && inTime && invited && has(e.Summary+" "+e.Location, in.Query) {
			found = append(found, e)
		}
	}
	page, next, err := pageByToken(found, "events:"+id, in.PageToken, or(in.MaxResults, 100))
	if err != nil {
		return result{}, err
	}
	return structured(struct {
		Items []*event `json:"items"`
		Next  string   `json:"nextPageToken,omitempty"`
	}{page, next})
}

func (c *calendar) get(in struct {
	EventID string `json:"eventId"`
}) (result, error) {
	e, err := c.find(in.EventID)
	if err != nil {
		return result{}, err
	}
	return structured(e)
}

// freeSlots looks for times from 8 to 17 UTC on working days at which none of
// the attendees has an event.
func (c *calendar) freeSlots(in struct {
	Attendees []string  `json:"attendees"`
	Minutes   int       `json:"durationMinutes"`
	TimeMin   time.Time `json:"timeMin"`
	TimeMax   time.Time `json:"timeMax"`
	Limit     int       `json:"limit"`
}) (result, error) {
	length := time.Duration(or(in.Minutes, 30)) * time.Minute
	if window := in.TimeMax.Sub(in.TimeMin); window < length || window > 31*24*time.Hour {
		return result{}, errors.New("400 Bad request: timeMax must be after timeMin by at least the duration and at most 31 days")
	}
	type slot struct {
		Start string `json:"start"`
		End   string `json:"end"`
	}
	slots := []slot{}
	for at := in.TimeMin.UTC().Truncate(30 * time.Minute); len(slots) < or(in.Limit, 10) && !at.Add(length).After(in.TimeMax); at = at.Add(30 * time.Minute) {
		end := at.Add(length)
		weekend := at.Weekday() == time.Saturday || at.Weekday() == time.Sunday
		working := at.Hour() >= 8 && end.Sub(at.Truncate(24*time.Hour)) <= 17*time.Hour
		if !at.Before(in.TimeMin) && !weekend && working && !c.busy(in.Attendees, at, end) {
			slots = append(slots, slot{at.Format(time.RFC3339), end.Format(time.RFC3339)})
		}
	}
	return structured(struct {
		Slots []slot `json:"slots"`
	}{slots})
}

func (c *calendar) busy(who []string, from, to time.Time) bool {
	return slices.ContainsFunc(c.events, func(e *event) bool {
		return e.from.Before(to) && e.to.After(from) && (slices.Contains(who, e.Organizer) ||
			slices.ContainsFunc(e.Attendees, func(a attendee) bool { return a.Response != "declined" && slices.Contains(who, a.Email) }))
	})
}

func (c *calendar) changes(in struct {
	EventID string `json:"eventId"`
	Token   string `json:"syncToken"`
}) (result, error) {
	page, next, err := pageByToken(c.effectsOn(in.EventID), "changes", in.Token, 100)
	if err != nil {
		return result{}, err
	}
	return jsonText(struct {
		Changes []Effect `json:"changes"`
		Next    string   `json:"syncToken,omitempty"`
	}{page, next})
}

type eventInput struct {
	EventID    string     `json:"eventId"`
	CalendarID string     `json:"calendarId"`
	Summary    *string    `json:"summary"`
	Location   *string    `json:"location"`
	Start      *moment    `json:"start"`
	End        *moment    `json:"end"`
	Attendees  []attendee `json:"attendees"`
}

// put applies the input to e. After an error, e is unchanged.
func (in eventInput) put(e *event) error {
	changed := *e
	if in.Start != nil {
		changed.Start = *in.Start
	}
	if in.End != nil {
		changed.End = *in.End
	}
	var err, err2 error
	changed.from, err = changed.Start.time()
	changed.to, err2 = changed.End.time()
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("400 Bad request: start and end need dateTime or date: %w", err)
	}
	if !changed.from.Before(changed.to) {
		return errors.New("400 Bad request: the event must end after it starts")
	}
	if in.Summary != nil {
		changed.Summary = *in.Summary
	}
	if in.Location != nil {
		changed.Location = *in.Location
	}
	if in.Attendees != nil {
		changed.Attendees = slices.Clone(in.Attendees)
		for i := range changed.Attendees {
			changed.Attendees[i].Response = or(changed.Attendees[i].Response, "needsAction")
		}
	}
	*e = changed
	return nil
}

func (c *calendar) create(in eventInput) (result, error) {
	list, err := c.list(or(in.CalendarID, "primary"))
	if err != nil {
		return result{}, err
	}
	if list.Role == "reader" {
		return result{}, fmt.Errorf("403 Permission denied: the calendar '%s' is read-only", list.ID)
	}
	e := &event{ID: fmt.Sprintf("new%05d", len(c.effects)), CalendarID: list.ID, Status: "confirmed", Organizer: c.w.staff[0].Email, Attendees: []attendee{}}
	if err := in.put(e); err != nil {
		return result{}, err
	}
	c.events = append(c.events, e)
	c.sort()
	c.did("create_event", e.ID, "%s", e.Summary)
	return jsonText(e)
}

func (c *calendar) update(in eventInput) (result, error) {
	e, err := c.editable(in.EventID)
	if err == nil {
		err = in.put(e)
	}
	if err != nil {
		return result{}, err
	}
	e.Version++
	c.sort()
	c.did("update_event", e.ID, "%s", e.Summary)
	return jsonText(e)
}

func (c *calendar) respond(in struct {
	EventID  string `json:"eventId"`
	Email    string `json:"email"`
	Response string `json:"response"`
}) (result, error) {
	e, err := c.find(in.EventID)
	if err != nil {
		return result{}, err
	}
	i := slices.IndexFunc(e.Attendees, func(a attendee) bool { return a.Email == in.Email })
	if i < 0 {
		return result{}, fmt.Errorf("400 Bad request: %s is not invited to '%s'", in.Email, e.Summary)
	}
	e.Attendees[i].Response = in.Response
	c.did("respond_to_invite", e.ID, "%s %s", in.Email, in.Response)
	return plain("%s: %s", in.Email, in.Response)
}

func (c *calendar) remove(in struct {
	EventID string `json:"eventId"`
}) (result, error) {
	e, err := c.editable(in.EventID)
	if err != nil {
		return result{}, err
	}
	c.events = slices.DeleteFunc(c.events, func(x *event) bool { return x == e })
	c.did("delete_event", e.ID, "%s", e.Summary)
	return plain("Deleted '%s'.", e.Summary)
}
