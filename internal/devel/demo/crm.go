package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

type crmServer struct {
	*serverBase
	w       *demoWorld
	objects []*dataTable // one table for each object type; the first column is Id, the second Version
	logged  int          // number of logged activities
}

func buildCRM(b *serverBase) map[string]toolFunc {
	c := newCRM(b)
	return map[string]toolFunc{
		"search_records":       readTool(c.searchRecords),
		"get_record":           readTool(c.getRecord),
		"describe_object":      readTool(c.describeObject),
		"list_users":           readTool(c.listUsers),
		"get_pipeline_summary": readTool(c.summarizePipeline),
		"list_audit_events":    readTool(c.readAudit),
		"create_record":        writeTool(c.createRecord),
		"update_record":        writeTool(c.updateRecord),
		"bulk_update_records":  writeTool(c.bulkUpdate),
		"delete_record":        writeTool(c.removeRecord),
		"convert_lead":         writeTool(c.convertLead),
		"log_activity":         writeTool(c.logActivity),
	}
}

// findObject returns the table of an object type, which must exist.
func (c *crmServer) findObject(name string) *dataTable {
	return c.objects[slices.IndexFunc(c.objects, func(t *dataTable) bool { return t.name == name })]
}

func (c *crmServer) findRecord(objectType, id string) (*dataTable, []any, error) {
	t := c.findObject(objectType)
	if i := t.rowIndex(id); i >= 0 {
		return t, t.rows[i], nil
	}
	return nil, nil, c.missingError(objectType, id)
}

type recordPage struct {
	Records    json.RawMessage `json:"records"`
	Total      int             `json:"total"`
	HasMore    bool            `json:"hasMore"`
	NextOffset *int            `json:"nextOffset,omitempty"`
}

func (c *crmServer) searchRecords(in struct {
	ObjectType string            `json:"objectType"`
	Filters    []filterCondition `json:"filters"`
	Fields     []string          `json:"fields"`
	OrderBy    sortOrder         `json:"orderBy"`
	Limit      int               `json:"limit"`
	Offset     int               `json:"offset"`
}) (toolResult, error) {
	t := c.findObject(in.ObjectType)
	for _, name := range in.Fields {
		if _, err := t.fieldIndex(name); err != nil {
			return toolResult{}, err
		}
	}
	found, err := t.filterRows(in.Filters, in.OrderBy)
	if err != nil {
		return toolResult{}, err
	}
	page := pageByOffset(found, in.Offset, orDefault(in.Limit, 50))
	answer := recordPage{Records: t.encodeRows(page, in.Fields...), Total: len(found)}
	if next := in.Offset + len(page); next < len(found) {
		answer.HasMore, answer.NextOffset = true, &next
	}
	return structuredResult(answer)
}

func (c *crmServer) getRecord(in struct {
	ObjectType string   `json:"objectType"`
	RecordID   string   `json:"recordId"`
	Fields     []string `json:"fields"`
}) (toolResult, error) {
	t, row, err := c.findRecord(in.ObjectType, in.RecordID)
	if err != nil {
		return toolResult{}, err
	}
	one := t.encodeRows([][]any{row}, in.Fields...)
	return jsonText(one[1 : len(one)-1])
}

func (c *crmServer) describeObject(in struct {
	ObjectType string `json:"objectType"`
}) (toolResult, error) {
	type field struct {
		Name     string     `json:"name"`
		Type     columnType `json:"type"`
		Values   []string   `json:"values,omitempty"`
		ReadOnly bool       `json:"readOnly,omitempty"`
	}
	var fields []field
	t := c.findObject(in.ObjectType)
	for _, col := range t.cols {
		fields = append(fields, field{col.name, col.kind, col.options, col.fixed})
	}
	return jsonText(struct {
		ObjectType string  `json:"objectType"`
		Records    int     `json:"records"`
		Fields     []field `json:"fields"`
	}{t.name, len(t.rows), fields})
}

func (c *crmServer) listUsers(struct{}) (toolResult, error) {
	type user struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Email string `json:"email"`
		Title string `json:"title"`
	}
	var list []user
	for _, p := range c.w.staff[:12] {
		list = append(list, user{p.ID, p.fullName(), p.Email, p.Title})
	}
	return jsonText(list)
}

func (c *crmServer) summarizePipeline(in struct {
	GroupBy  string `json:"groupBy"`
	Currency string `json:"currency"`
}) (toolResult, error) {
	type group struct {
		Key      string  `json:"key"`
		Deals    int     `json:"deals"`
		Amount   float64 `json:"amount"`
		Weighted float64 `json:"weighted"`
	}
	t := c.findObject("Deal")
	currency := orDefault(in.Currency, "EUR")
	by := t.columnIndex(map[string]string{"": "Stage", "stage": "Stage", "owner": "OwnerId", "region": "Region"}[in.GroupBy])
	stage, amount, probability, money := t.columnIndex("Stage"), t.columnIndex("Amount"), t.columnIndex(
		"Probability",
	), t.columnIndex("Currency")
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
		value, _ := numberValue(row[amount])
		chance, _ := numberValue(row[probability])
		g := groups[i]
		g.Deals, g.Amount, g.Weighted = g.Deals+1, g.Amount+value, g.Weighted+value*chance/100
	}
	slices.SortFunc(groups, func(a, b *group) int { return strings.Compare(a.Key, b.Key) })
	return structuredResult(struct {
		Currency string   `json:"currency"`
		Groups   []*group `json:"groups"`
	}{currency, groups})
}

func (c *crmServer) readAudit(in struct {
	RecordID string `json:"recordId"`
	Limit    int    `json:"limit"`
	Offset   int    `json:"offset"`
}) (toolResult, error) {
	all := c.effectsOn(in.RecordID)
	page := pageByOffset(all, in.Offset, orDefault(in.Limit, 100))
	return structuredResult(struct {
		Events  []RecordedEffect `json:"events"`
		Total   int              `json:"total"`
		HasMore bool             `json:"hasMore"`
	}{page, len(all), in.Offset+len(page) < len(all)})
}

// setFields checks all values and, only if all are valid, changes the row. It returns the names of the fields whose
// value has changed.
func (t *dataTable) setFields(row []any, data map[string]any) ([]string, error) {
	values := map[int]any{}
	for _, name := range sortedKeys(data) {
		i, err := t.fieldIndex(name)
		if err != nil {
			return nil, err
		}
		if t.cols[i].fixed {
			return nil, fmt.Errorf("FIELD_NOT_WRITEABLE: %s.%s is set by the server", t.name, t.cols[i].name)
		}
		v, err := t.cols[i].convertValue(data[name])
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

func (c *crmServer) createRecord(in struct {
	ObjectType string         `json:"objectType"`
	Data       map[string]any `json:"data"`
}) (toolResult, error) {
	t := c.findObject(in.ObjectType)
	row := make([]any, len(t.cols))
	if _, err := t.setFields(row, in.Data); err != nil {
		return toolResult{}, err
	}
	id := c.insertRow("create_record", t, row)
	return structuredResult(recordChange{ID: id, Version: 1, Changed: sortedKeys(in.Data)})
}

// insertRow sets the id, version and creation date of a new row and adds it to the table.
func (c *crmServer) insertRow(tool string, t *dataTable, row []any) string {
	id := fmt.Sprintf("%.3s9%05d", fmt.Sprint(t.rows[0][0]), len(c.effects))
	row[0], row[1] = id, int64(1)
	if i := t.columnIndex("CreatedDate"); i >= 0 {
		row[i] = c.nextTime().Format(time.RFC3339)
	}
	t.rows = append(t.rows, row)
	c.recordEffect(tool, id, "created %s", t.name)
	return id
}

type recordChange struct {
	ID      string   `json:"id"`
	Version int64    `json:"version"`
	Changed []string `json:"changed"`
}

// applyChange changes one record. The record's version increases only if a value has changed.
func (c *crmServer) applyChange(tool, objectType, id string, data map[string]any, ifVersion int64) (recordChange, error) {
	t, row, err := c.findRecord(objectType, id)
	if err != nil {
		return recordChange{}, err
	}
	version, _ := row[1].(int64)
	if ifVersion != 0 && ifVersion != version {
		return recordChange{}, fmt.Errorf("409 Conflict: %s '%s' is at version %d, not %d; read it again", objectType, id, version, ifVersion)
	}
	changed, err := t.setFields(row, data)
	if err != nil {
		return recordChange{}, err
	}
	if len(changed) > 0 {
		version++
		row[1] = version
		c.recordEffect(tool, id, "%s: %s", objectType, strings.Join(changed, ", "))
	}
	return recordChange{id, version, changed}, nil
}

func (c *crmServer) updateRecord(in struct {
	ObjectType string         `json:"objectType"`
	RecordID   string         `json:"recordId"`
	Data       map[string]any `json:"data"`
	IfVersion  int64          `json:"ifVersion"`
}) (toolResult, error) {
	done, err := c.applyChange("update_record", in.ObjectType, in.RecordID, in.Data, in.IfVersion)
	if err != nil {
		return toolResult{}, err
	}
	return structuredResult(done)
}

func (c *crmServer) bulkUpdate(in struct {
	ObjectType string `json:"objectType"`
	Updates    []struct {
		RecordID string         `json:"recordId"`
		Data     map[string]any `json:"data"`
	} `json:"updates"`
	AllOrNone bool `json:"allOrNone"`
}) (toolResult, error) {
	if in.AllOrNone {
		for _, u := range in.Updates {
			if err := c.checkChange(in.ObjectType, u.RecordID, u.Data); err != nil {
				return toolResult{}, fmt.Errorf("%s: %w; nothing was changed", u.RecordID, err)
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
		done, err := c.applyChange("bulk_update_records", in.ObjectType, u.RecordID, u.Data, 0)
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

// checkChange returns the error that applyChange would return for the same arguments. It changes nothing.
func (c *crmServer) checkChange(objectType, id string, data map[string]any) error {
	t, row, err := c.findRecord(objectType, id)
	if err == nil {
		_, err = t.setFields(slices.Clone(row), data)
	}
	return err
}

func (c *crmServer) removeRecord(in struct {
	ObjectType string `json:"objectType"`
	RecordID   string `json:"recordId"`
}) (toolResult, error) {
	t, _, err := c.findRecord(in.ObjectType, in.RecordID)
	if err != nil {
		return toolResult{}, err
	}
	if in.ObjectType == "Account" && slices.ContainsFunc(c.findObject("Deal").rows, func(r []any) bool { return r[3] == in.RecordID }) {
		return toolResult{}, fmt.Errorf("DELETE_FAILED: Account '%s' still has deals", in.RecordID)
	}
	i := t.rowIndex(in.RecordID)
	t.rows = slices.Delete(t.rows, i, i+1)
	c.recordEffect("delete_record", in.RecordID, "deleted %s", in.ObjectType)
	return textResult("Deleted %s %s.", in.ObjectType, in.RecordID)
}

func (c *crmServer) convertLead(in struct {
	LeadID string `json:"leadId"`
	Deal   *struct {
		Name   string  `json:"name"`
		Amount float64 `json:"amount"`
	} `json:"deal"`
}) (toolResult, error) {
	t, lead, err := c.findRecord("Lead", in.LeadID)
	if err != nil {
		return toolResult{}, err
	}
	if lead[t.columnIndex("Status")] == "Qualified" {
		return toolResult{}, fmt.Errorf("LEAD_ALREADY_CONVERTED: Lead '%s' is Qualified", in.LeadID)
	}
	person := map[string]any{}
	for _, name := range []string{"FirstName", "LastName", "Email", "Phone", "Title"} {
		person[name] = lead[t.columnIndex(name)]
	}
	contactID := c.insertNew("Contact", person)
	if _, err := c.applyChange("convert_lead", "Lead", in.LeadID, map[string]any{"Status": "Qualified"}, 0); err != nil {
		return toolResult{}, err
	}
	var dealID string
	if in.Deal != nil {
		dealID = c.insertNew("Deal", map[string]any{
			"Name": in.Deal.Name, "Amount": in.Deal.Amount, "Stage": "Qualification",
			"Region": lead[t.columnIndex("Region")],
		})
	}
	return structuredResult(struct {
		LeadID    string `json:"leadId"`
		ContactID string `json:"contactId"`
		DealID    string `json:"dealId,omitempty"`
	}{in.LeadID, contactID, dealID})
}

// insertNew stores a new record whose values are already checked.
func (c *crmServer) insertNew(objectType string, data map[string]any) string {
	t := c.findObject(objectType)
	row := make([]any, len(t.cols))
	_, _ = t.setFields(row, data)
	return c.insertRow("convert_lead", t, row)
}

func (c *crmServer) logActivity(in struct {
	ObjectType string `json:"objectType"`
	RecordID   string `json:"recordId"`
	Kind       string `json:"kind"`
	Subject    string `json:"subject"`
}) (toolResult, error) {
	if _, _, err := c.findRecord(in.ObjectType, in.RecordID); err != nil {
		return toolResult{}, err
	}
	c.logged++
	c.recordEffect("log_activity", in.RecordID, "%s: %s", in.Kind, in.Subject)
	return textResult("Logged %s '%s' on %s %s as activity 00T%06d.", in.Kind, in.Subject, in.ObjectType, in.RecordID, c.logged)
}
