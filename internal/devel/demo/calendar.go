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

type calendarServer struct {
	*serverBase
	w      *demoWorld
	lists  []calendarList
	events []*calendarEvent // sorted by start
}

type calendarList struct {
	ID      string `json:"id"`
	Summary string `json:"summary"`
	Zone    string `json:"timeZone"`
	Role    string `json:"accessRole"`
}

type eventTime struct {
	DateTime string `json:"dateTime,omitempty"` // RFC 3339
	Date     string `json:"date,omitempty"`     // only for whole days
	Zone     string `json:"timeZone,omitempty"`
}

// parseTime returns the event's time as a time.Time. Events of a whole day begin at midnight UTC.
func (m eventTime) parseTime() (time.Time, error) {
	if m.DateTime != "" {
		return time.Parse(time.RFC3339, m.DateTime)
	}
	return time.Parse(time.DateOnly, m.Date)
}

type eventAttendee struct {
	Email    string `json:"email"`
	Name     string `json:"displayName,omitempty"`
	Response string `json:"responseStatus"`
	Optional bool   `json:"optional,omitempty"`
}

type calendarEvent struct {
	ID         string          `json:"id"`
	CalendarID string          `json:"calendarId"`
	Status     string          `json:"status"`
	Summary    string          `json:"summary"`
	Location   string          `json:"location,omitempty"`
	Start      eventTime       `json:"start"`
	End        eventTime       `json:"end"`
	Organizer  string          `json:"organizer"`
	Attendees  []eventAttendee `json:"attendees"`
	Version    int             `json:"sequence"`

	from, to time.Time
}

func buildCalendar(b *serverBase) map[string]toolFunc {
	c := &calendarServer{serverBase: b, w: newWorld()}
	c.fillEvents()
	return map[string]toolFunc{
		"list_calendars":    readTool(c.listCalendars),
		"list_events":       readTool(c.listEvents),
		"get_event":         readTool(c.getEvent),
		"find_free_slots":   readTool(c.freeSlots),
		"list_changes":      readTool(c.listChanges),
		"create_event":      writeTool(c.createEvent),
		"update_event":      writeTool(c.updateEvent),
		"respond_to_invite": writeTool(c.respondToEvent),
		"delete_event":      writeTool(c.removeEvent),
	}
}

func (c *calendarServer) fillEvents() {
	c.lists = []calendarList{{"primary", c.w.staff[0].fullName(), "Europe/Oslo", "owner"}, {"sales", "Sales team", "Europe/Oslo", "writer"},
		{"holidays", "Public holidays", "Europe/Oslo", "reader"}}
	r := newSeededRand("calendar")
	subjects := []string{"Demo for ", "Quarterly review ", "Contract talk ", "Site visit ", "Kick-off ", "Support call "}
	for i := range eventCount {
		contact := pickOne(r, c.w.contacts)
		start := demoToday.AddDate(0, 0, randomBetween(r, -180, 60)).Truncate(24 * time.Hour).Add(
			time.Duration(randomBetween(r, 16, 34)) * 30 * time.Minute,
		)
		for start.Weekday() == time.Saturday || start.Weekday() == time.Sunday {
			start = start.AddDate(0, 0, 1)
		}
		e := &calendarEvent{ID: fmt.Sprintf("evt%05d", 10_000+i), CalendarID: pickOne(r, []string{
			"primary", "sales", "sales",
		}), Status: "confirmed",
			Summary: pickOne(r, subjects) + contact.Company, Location: pickOne(r, []string{"", "Online", contact.City}),
			Organizer: pickOne(r, c.w.staff[:12]).Email,
			Attendees: []eventAttendee{{
				Email: contact.Email, Name: contact.fullName(),
				Response: pickOne(r, []string{"accepted", "tentative", "needsAction", "declined"}),
			}}}
		for range r.IntN(3) {
			p := pickOne(r, c.w.staff)
			e.Attendees = append(e.Attendees, eventAttendee{p.Email, p.fullName(), "accepted", r.IntN(4) == 0})
		}
		e.setTimes(start, start.Add(time.Duration(randomBetween(r, 1, 4))*30*time.Minute))
		c.events = append(c.events, e)
	}
	for _, d := range []string{"2026-12-25", "2026-12-26", "2027-01-01"} {
		e := &calendarEvent{ID: "hol" + d, CalendarID: "holidays", Status: "confirmed", Summary: "Public holiday", Start: eventTime{Date: d},
			Organizer: "holidays@nordlys.example", Attendees: []eventAttendee{}}
		e.from, _ = e.Start.parseTime()
		e.to = e.from.AddDate(0, 0, 1)
		e.End = eventTime{Date: formatDay(e.to)}
		c.events = append(c.events, e)
	}
	c.sortEvents()
}

func (e *calendarEvent) setTimes(from, to time.Time) {
	e.from, e.to = from, to
	e.Start, e.End = eventTime{DateTime: from.Format(time.RFC3339)}, eventTime{DateTime: to.Format(time.RFC3339)}
}

func (c *calendarServer) sortEvents() {
	slices.SortStableFunc(c.events, func(a, b *calendarEvent) int { return cmp.Or(a.from.Compare(b.from), strings.Compare(a.ID, b.ID)) })
}

func (c *calendarServer) findCalendar(id string) (calendarList, error) {
	i := slices.IndexFunc(c.lists, func(l calendarList) bool { return l.ID == id })
	if i < 0 {
		return calendarList{}, c.missingError("calendar", id)
	}
	return c.lists[i], nil
}

func (c *calendarServer) findEvent(id string) (*calendarEvent, error) {
	i := slices.IndexFunc(c.events, func(e *calendarEvent) bool { return e.ID == id })
	if i < 0 {
		return nil, c.missingError("event", id)
	}
	return c.events[i], nil
}

// findEditable returns an event that the account is permitted to change.
func (c *calendarServer) findEditable(id string) (*calendarEvent, error) {
	e, err := c.findEvent(id)
	if err != nil {
		return nil, err
	}
	if list, err := c.findCalendar(e.CalendarID); err != nil || list.Role == "reader" {
		return nil, fmt.Errorf("403 Permission denied: the calendar '%s' is read-only", e.CalendarID)
	}
	return e, nil
}

func (c *calendarServer) listCalendars(struct{}) (toolResult, error) { return jsonText(c.lists) }

func (c *calendarServer) listEvents(in struct {
	CalendarID string    `json:"calendarId"`
	TimeMin    time.Time `json:"timeMin"`
	TimeMax    time.Time `json:"timeMax"`
	Query      string    `json:"q"`
	Attendee   string    `json:"attendee"`
	MaxResults int       `json:"maxResults"`
	PageToken  string    `json:"pageToken"`
}) (toolResult, error) {
	id := orDefault(in.CalendarID, "primary")
	if _, err := c.findCalendar(id); err != nil {
		return toolResult{}, err
	}
	var found []*calendarEvent
	for _, e := range c.events {
		inTime := e.to.After(in.TimeMin) && (in.TimeMax.IsZero() || e.from.Before(in.TimeMax))
		invited := in.Attendee == "" || slices.ContainsFunc(e.Attendees, func(a eventAttendee) bool { return a.Email == in.Attendee })
		if e.CalendarID == id && inTime && invited && containsFold(e.Summary+" "+e.Location, in.Query) {
			found = append(found, e)
		}
	}
	page, next, err := pageByToken(found, "events:"+id, in.PageToken, orDefault(in.MaxResults, 100))
	if err != nil {
		return toolResult{}, err
	}
	return structuredResult(struct {
		Items []*calendarEvent `json:"items"`
		Next  string           `json:"nextPageToken,omitempty"`
	}{page, next})
}

func (c *calendarServer) getEvent(in struct {
	EventID string `json:"eventId"`
}) (toolResult, error) {
	e, err := c.findEvent(in.EventID)
	if err != nil {
		return toolResult{}, err
	}
	return structuredResult(e)
}

// freeSlots returns times between 8 and 17 UTC on working days at which no attendee has an event.
func (c *calendarServer) freeSlots(in struct {
	Attendees []string  `json:"attendees"`
	Minutes   int       `json:"durationMinutes"`
	TimeMin   time.Time `json:"timeMin"`
	TimeMax   time.Time `json:"timeMax"`
	Limit     int       `json:"limit"`
}) (toolResult, error) {
	length := time.Duration(orDefault(in.Minutes, 30)) * time.Minute
	if window := in.TimeMax.Sub(in.TimeMin); window < length || window > 31*24*time.Hour {
		return toolResult{}, errors.New("400 Bad request: timeMax must be after timeMin by at least the duration and at most 31 days")
	}
	type slot struct {
		Start string `json:"start"`
		End   string `json:"end"`
	}
	slots := []slot{}
	for at := in.TimeMin.UTC().Truncate(30 * time.Minute); len(slots) < orDefault(in.Limit, 10) &&
		!at.Add(length).After(in.TimeMax); at = at.Add(30 * time.Minute) {
		end := at.Add(length)
		weekend := at.Weekday() == time.Saturday || at.Weekday() == time.Sunday
		working := at.Hour() >= 8 && end.Sub(at.Truncate(24*time.Hour)) <= 17*time.Hour
		if !at.Before(in.TimeMin) && !weekend && working && !c.isBusy(in.Attendees, at, end) {
			slots = append(slots, slot{at.Format(time.RFC3339), end.Format(time.RFC3339)})
		}
	}
	return structuredResult(struct {
		Slots []slot `json:"slots"`
	}{slots})
}

func (c *calendarServer) isBusy(who []string, from, to time.Time) bool {
	return slices.ContainsFunc(c.events, func(e *calendarEvent) bool {
		return e.from.Before(to) && e.to.After(from) && (slices.Contains(who, e.Organizer) ||
			slices.ContainsFunc(e.Attendees, func(a eventAttendee) bool { return a.Response != "declined" && slices.Contains(who, a.Email) }))
	})
}

func (c *calendarServer) listChanges(in struct {
	EventID string `json:"eventId"`
	Token   string `json:"syncToken"`
}) (toolResult, error) {
	page, next, err := pageByToken(c.effectsOn(in.EventID), "changes", in.Token, 100)
	if err != nil {
		return toolResult{}, err
	}
	return jsonText(struct {
		Changes []RecordedEffect `json:"changes"`
		Next    string           `json:"syncToken,omitempty"`
	}{page, next})
}

type eventInput struct {
	EventID    string          `json:"eventId"`
	CalendarID string          `json:"calendarId"`
	Summary    *string         `json:"summary"`
	Location   *string         `json:"location"`
	Start      *eventTime      `json:"start"`
	End        *eventTime      `json:"end"`
	Attendees  []eventAttendee `json:"attendees"`
}

// applyTo applies the fields of the input to the event e. If it returns an error, e is unchanged.
func (in eventInput) applyTo(e *calendarEvent) error {
	changed := *e
	if in.Start != nil {
		changed.Start = *in.Start
	}
	if in.End != nil {
		changed.End = *in.End
	}
	var err, err2 error
	changed.from, err = changed.Start.parseTime()
	changed.to, err2 = changed.End.parseTime()
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
			changed.Attendees[i].Response = orDefault(changed.Attendees[i].Response, "needsAction")
		}
	}
	*e = changed
	return nil
}

func (c *calendarServer) createEvent(in eventInput) (toolResult, error) {
	list, err := c.findCalendar(orDefault(in.CalendarID, "primary"))
	if err != nil {
		return toolResult{}, err
	}
	if list.Role == "reader" {
		return toolResult{}, fmt.Errorf("403 Permission denied: the calendar '%s' is read-only", list.ID)
	}
	e := &calendarEvent{
		ID: fmt.Sprintf("new%05d", len(c.effects)), CalendarID: list.ID, Status: "confirmed",
		Organizer: c.w.staff[0].Email, Attendees: []eventAttendee{},
	}
	if err := in.applyTo(e); err != nil {
		return toolResult{}, err
	}
	c.events = append(c.events, e)
	c.sortEvents()
	c.recordEffect("create_event", e.ID, "%s", e.Summary)
	return jsonText(e)
}

func (c *calendarServer) updateEvent(in eventInput) (toolResult, error) {
	e, err := c.findEditable(in.EventID)
	if err == nil {
		err = in.applyTo(e)
	}
	if err != nil {
		return toolResult{}, err
	}
	e.Version++
	c.sortEvents()
	c.recordEffect("update_event", e.ID, "%s", e.Summary)
	return jsonText(e)
}

func (c *calendarServer) respondToEvent(in struct {
	EventID  string `json:"eventId"`
	Email    string `json:"email"`
	Response string `json:"response"`
}) (toolResult, error) {
	e, err := c.findEvent(in.EventID)
	if err != nil {
		return toolResult{}, err
	}
	i := slices.IndexFunc(e.Attendees, func(a eventAttendee) bool { return a.Email == in.Email })
	if i < 0 {
		return toolResult{}, fmt.Errorf("400 Bad request: %s is not invited to '%s'", in.Email, e.Summary)
	}
	e.Attendees[i].Response = in.Response
	c.recordEffect("respond_to_invite", e.ID, "%s %s", in.Email, in.Response)
	return textResult("%s: %s", in.Email, in.Response)
}

func (c *calendarServer) removeEvent(in struct {
	EventID string `json:"eventId"`
}) (toolResult, error) {
	e, err := c.findEditable(in.EventID)
	if err != nil {
		return toolResult{}, err
	}
	c.events = slices.DeleteFunc(c.events, func(x *calendarEvent) bool { return x == e })
	c.recordEffect("delete_event", e.ID, "%s", e.Summary)
	return textResult("Deleted '%s'.", e.Summary)
}
