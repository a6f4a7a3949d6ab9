package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

type crm struct {
	*base
	w       *world
	objects []*table // first column Id, second Version
	logged  int      // activities
}

func buildCRM(b *base) map[string]tool {
	c := newCRM(b)
	return map[string]tool{
		"search_records":       read(c.search),
		"get_record":           read(c.get),
		"describe_object":      read(c.describe),
		"list_users":           read(c.users),
		"get_pipeline_summary": read(c.pipeline),
		"list_audit_events":    read(c.audit),
		"create_record":        write(c.create),
		"update_record":        write(c.update),
		"bulk_update_records":  write(c.bulkUpdate),
		"delete_record":        write(c.remove),
		"convert_lead":         write(c.convert),
		"log_activity":         write(c.logActivity),
	}
}

// object finds a table of the schema.
func (c *crm) object(name string) *table {
	return c.objects[slices.IndexFunc(c.objects, func(t *table) bool { return t.name == name })]
}

func (c *crm) find(objectType, id string) (*table, []any, error) {
	t := c.object(objectType)
	if i := t.row(id); i >= 0 {
		return t, t.rows[i], nil
	}
	return nil, nil, c.missing(objectType, id)
}

type recordPage struct {
	Records    json.RawMessage `json:"records"`
	Total      int             `json:"total"`
	HasMore    bool            `json:"hasMore"`
	NextOffset *int            `json:"nextOffset,omitempty"`
}

func (c *crm) search(in struct {
	ObjectType string      `json:"objectType"`
	Filters    []condition `json:"filters"`
	Fields     []string    `json:"fields"`
	OrderBy    sorting     `json:"orderBy"`
	Limit      int         `json:"limit"`
	Offset     int         `json:"offset"`
}) (result, error) {
	t := c.object(in.ObjectType)
	for _, name := range in.Fields {
		if _, err := t.field(name); err != nil {
			return result{}, err
		}
	}
	found, err := t.filtered(in.Filters, in.OrderBy)
	if err != nil {
		return result{}, err
	}
	page := pageByOffset(found, in.Offset, or(in.Limit, 50))
	answer := recordPage{Records: t.objects(page, in.Fields...), Total: len(found)}
	if next := in.Offset + len(page); next < len(found) {
		answer.HasMore, answer.NextOffset = true, &next
	}
	return structured(answer)
}

func (c *crm) get(in struct {
	ObjectType string   `json:"objectType"`
	RecordID   string   `json:"recordId"`
	Fields     []string `json:"fields"`
}) (result, error) {
	t, row, err := c.find(in.ObjectType, in.RecordID)
	if err != nil {
		return result{}, err
	}
	one := t.objects([][]any{row}, in.Fields...)
	return jsonText(one[1 : len(one)-1])
}

func (c *crm) describe(in struct {
	ObjectType string `json:"objectType"`
}) (result, error) {
	type field struct {
		Name     string   `json:"name"`
		Type     kind     `json:"type"`
		Values   []string `json:"values,omitempty"`
		ReadOnly bool     `json:"readOnly,omitempty"`
	}
	var fields []field
	t := c.object(in.ObjectType)
	for _, col := range t.cols {
		fields = append(fields, field{col.name, col.kind, col.options, col.fixed})
	}
	return jsonText(struct {
		ObjectType string  `json:"objectType"`
		Records    int     `json:"records"`
		Fields     []field `json:"fields"`
	}{t.name, len(t.rows), fields})
}

func (c *crm) users(struct{}) (result, error) {
	type user struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Email string `json:"email"`
		Title string `json:"title"`
	}
	var list []user
	for _, p := range c.w.staff[:12] {
		list = append(list, user{p.ID, p.name(), p.Email, p.Title})
	}
	return jsonText(list)
}

func (c *crm) pipeline(in struct {
	GroupBy  string `json:"groupBy"`
	Currency string `json:"currency"`
}) (result, error) {
	type group struct {
		Key      string  `json:"key"`
		Deals    int     `json:"deals"`
		Amount   float64 `json:"amount"`
		Weighted float64 `json:"weighted"`
	}
	t := c.object("Deal")
	currency := or(in.Currency, "EUR")
	by := t.col(map[string]string{"": "Stage", "stage": "Stage", "owner": "OwnerId", "region": "Region"}[in.GroupBy])
	stage, amount, probability, money := t.col("Stage"), t.col("Amount"), t.col("Probability"), t.col("Currency")
	groups := []*group{}
	for _, row := range t.rows {
		if s, _ := row[stage].(string); row[money] != currency || strings.HasPrefix(s, "Closed") {
			continue
		}
		key := fmt.Sprint(row[by])
		i := slices.IndexFunc(groups, func(g *group) bool { return g.Key == key })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{Key: key})
		}
		value, _ := number(row[amount])
		chance, _ := number(row[probability])
		g := groups[i]
		g.Deals, g.Amount, g.Weighted = g.Deals+1, g.Amount+value, g.Weighted+value*chance/100
	}
	slices.SortFunc(groups, func(a, b *group) int { return strings.Compare(a.Key, b.Key) })
	return structured(struct {
		Currency string   `json:"currency"`
		Groups   []*group `json:"groups"`
	}{currency, groups})
}

func (c *crm) audit(in struct {
	RecordID string `json:"recordId"`
	Limit    int    `json:"limit"`
	Offset   int    `json:"offset"`
}) (result, error) {
	all := c.effectsOn(in.RecordID)
	page := pageByOffset(all, in.Offset, or(in.Limit, 100))
	return structured(struct {
		Events  []Effect `json:"events"`
		Total   int      `json:"total"`
		HasMore bool     `json:"hasMore"`
	}{page, len(all), in.Offset+len(page) < len(all)})
}

// set checks all values and only then changes the row. It returns the names of
// the fields that have a new value.
func (t *table) set(row []any, data map[string]any) ([]string, error) {
	values := map[int]any{}
	for _, name := range sortedKeys(data) {
		i, err := t.field(name)
		if err != nil {
			return nil, err
		}
		if t.cols[i].fixed {
			return nil, fmt.Errorf("FIELD_NOT_WRITEABLE: %s.%s is set by the server", t.name, t.cols[i].name)
		}
		v, err := t.cols[i].fit(data[name])
		if err != nil {
			return nil, fmt.Errorf("INVALID_VALUE: %s.%w", t.name, err)
		}
		values[i] = v
	}
	changed := []string{}
	for i, col := range t.cols {
		if v, given := values[i]; given && v != row[i] {
			row[i] = v
			changed = append(changed, col.name)
		}
	}
	return changed, nil
}

func (c *crm) create(in struct {
	ObjectType string         `json:"objectType"`
	Data       map[string]any `json:"data"`
}) (result, error) {
	t := c.object(in.ObjectType)
	row := make([]any, len(t.cols))
	if _, err := t.set(row, in.Data); err != nil {
		return result{}, err
	}
	id := c.insert("create_record", t, row)
	return structured(change{ID: id, Version: 1, Changed: sortedKeys(in.Data)})
}

// insert sets the fixed values of a row and stores it.
func (c *crm) insert(tool string, t *table, row []any) string {
	id := fmt.Sprintf("%.3s9%05d", fmt.Sprint(t.rows[0][0]), len(c.effects))
	row[0], row[1] = id, int64(1)
	if i := t.col("CreatedDate"); i >= 0 {
		row[i] = c.clock().Format(time.RFC3339)
	}
	t.rows = append(t.rows, row)
	c.did(tool, id, "created %s", t.name)
	return id
}

type change struct {
	ID      string   `json:"id"`
	Version int64    `json:"version"`
	Changed []string `json:"changed"`
}

// apply changes one record. Its version increases only if a value is new.
func (c *crm) apply(tool, objectType, id string, data map[string]any, ifVersion int64) (change, error) {
	t, row, err := c.find(objectType, id)
	if err != nil {
		return change{}, err
	}
	version, _ := row[1].(int64)
	if ifVersion != 0 && ifVersion != version {
		return change{}, fmt.Errorf("409 Conflict: %s '%s' is at version %d, not %d; read it again", objectType, id, version, ifVersion)
	}
	changed, err := t.set(row, data)
	if err != nil {
		return change{}, err
	}
	if len(changed) > 0 {
		version++
		row[1] = version
		c.did(tool, id, "%s: %s", objectType, strings.Join(changed, ", "))
	}
	return change{id, version, changed}, nil
}

func (c *crm) update(in struct {
	ObjectType string         `json:"objectType"`
	RecordID   string         `json:"recordId"`
	Data       map[string]any `json:"data"`
	IfVersion  int64          `json:"ifVersion"`
}) (result, error) {
	done, err := c.apply("update_record", in.ObjectType, in.RecordID, in.Data, in.IfVersion)
	if err != nil {
		return result{}, err
	}
	return structured(done)
}

func (c *crm) bulkUpdate(in struct {
	ObjectType string `json:"objectType"`
	Updates    []struct {
		RecordID string         `json:"recordId"`
		Data     map[string]any `json:"data"`
	} `json:"updates"`
	AllOrNone bool `json:"allOrNone"`
}) (result, error) {
	if in.AllOrNone {
		for _, u := range in.Updates {
			if err := c.tryOut(in.ObjectType, u.RecordID, u.Data); err != nil {
				return result{}, fmt.Errorf("%s: %w; nothing was changed", u.RecordID, err)
			}
		}
	}
	type outcome struct {
		ID      string `json:"id"`
		Success bool   `json:"success"`
		Version int64  `json:"version,omitempty"`
		Error   string `json:"error,omitempty"`
	}
	outcomes, failures := []outcome{}, 0
	for _, u := range in.Updates {
		done, err := c.apply("bulk_update_records", in.ObjectType, u.RecordID, u.Data, 0)
		if err != nil {
			failures++
			outcomes = append(outcomes, outcome{ID: u.RecordID, Error: err.Error()})
			continue
		}
		outcomes = append(outcomes, outcome{ID: u.RecordID, Success: true, Version: done.Version})
	}
	return jsonText(struct {
		Results []outcome `json:"results"`
		Updated int       `json:"updated"`
		Failed  int       `json:"failed"`
	}{outcomes, len(outcomes) - failures, failures})
}

// tryOut returns the error that apply would return, and changes nothing.
func (c *crm) tryOut(objectType, id string, data map[string]any) error {
	t, row, err := c.find(objectType, id)
	if err == nil {
		_, err = t.set(slices.Clone(row), data)
	}
	return err
}

func (c *crm) remove(in struct {
	ObjectType string `json:"objectType"`
	RecordID   string `json:"recordId"`
}) (result, error) {
	t, _, err := c.find(in.ObjectType, in.RecordID)
	if err != nil {
		return result{}, err
	}
	if in.ObjectType == "Account" && slices.ContainsFunc(c.object("Deal").rows, func(r []any) bool { return r[3] == in.RecordID }) {
		return result{}, fmt.Errorf("DELETE_FAILED: Account '%s' still has deals", in.RecordID)
	}
	i := t.row(in.RecordID)
	t.rows = slices.Delete(t.rows, i, i+1)
	c.did("delete_record", in.RecordID, "deleted %s", in.ObjectType)
	return plain("Deleted %s %s.", in.ObjectType, in.RecordID)
}

func (c *crm) convert(in struct {
	LeadID string `json:"leadId"`
	Deal   *struct {
		Name   string  `json:"name"`
		Amount float64 `json:"amount"`
	} `json:"deal"`
}) (result, error) {
	t, lead, err := c.find("Lead", in.LeadID)
	if err != nil {
		return result{}, err
	}
	if lead[t.col("Status")] == "Qualified" {
		return result{}, fmt.Errorf("LEAD_ALREADY_CONVERTED: Lead '%s' is Qualified", in.LeadID)
	}
	person := map[string]any{}
	for _, name := range []string{"FirstName", "LastName", "Email", "Phone", "Title"} {
		person[name] = lead[t.col(name)]
	}
	contactID := c.insertNew("Contact", person)
	if _, err := c.apply("convert_lead", "Lead", in.LeadID, map[string]any{"Status": "Qualified"}, 0); err != nil {
		return result{}, err
	}
	var dealID string
	if in.Deal != nil {
		dealID = c.insertNew("Deal", map[string]any{"Name": in.Deal.Name, "Amount": in.Deal.Amount, "Stage": "Qualification", "Region": lead[t.col("Region")]})
	}
	return structured(struct {
		LeadID    string `json:"leadId"`
		ContactID string `json:"contactId"`
		DealID    string `json:"dealId,omitempty"`
	}{in.LeadID, contactID, dealID})
}

// insertNew stores a record with values that are already checked.
func (c *crm) insertNew(objectType string, data map[string]any) string {
	t := c.object(objectType)
	row := make([]any, len(t.cols))
	_, _ = t.set(row, data)
	return c.insert("convert_lead", t, row)
}

func (c *crm) logActivity(in struct {
	ObjectType string `json:"objectType"`
	RecordID   string `json:"recordId"`
	Kind       string `json:"kind"`
	Subject    string `json:"subject"`
}) (result, error) {
	if _, _, err := c.find(in.ObjectType, in.RecordID); err != nil {
		return result{}, err
	}
	c.logged++
	c.did("log_activity", in.RecordID, "%s: %s", in.Kind, in.Subject)
	return plain("Logged %s '%s' on %s %s as activity 00T%06d.", in.Kind, in.Subject, in.ObjectType, in.RecordID, c.logged)
}
