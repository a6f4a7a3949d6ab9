package export_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"retort/internal/audit/export"
	"retort/internal/core"
)

// ocsfShape describes the attributes of an OCSF class or object in version 1.2.0, as far as events use them. Each
// attribute has a type, with * if it is required. At least one of the attributes in oneOf must be present.
type ocsfShape struct {
	attributes string
	oneOf      string
}

// ocsfObjects holds the attributes of the objects in the schema. The types are s for text, i for integers, t for
// milliseconds, o for anything, and names of objects. The prefix [] means a list.
var ocsfObjects = map[string]ocsfShape{
	"metadata":         {"version:s* product:product* uid:s sequence:i log_name:s event_code:s correlation_uid:s profiles:[]s", ""},
	"product":          {"name:s vendor_name:s* version:s", ""},
	"actor":            {"user:user session:session app_name:s", "user session app_name"},
	"user":             {"name:s type_id:i", "name"},
	"session":          {"uid:s", ""},
	"api":              {"operation:s* service:service request:request", ""},
	"service":          {"name:s", ""},
	"request":          {"uid:s*", ""},
	"network_endpoint": {"name:s svc_name:s", "name svc_name"},
	"managed_entity":   {"name:s type:s version:s", "name"},
	"finding_info":     {"uid:s* title:s* types:[]s", ""},
	"evidences":        {"actor:actor api:api", "actor api"},
}

const ocsfBase = "activity_id:i* activity_name:s category_uid:i* class_uid:i* class_name:s type_uid:i* severity_id:i* time:t* message:s status_id:i status_code:s metadata:metadata* unmapped:o "

var ocsfClasses = map[int]struct {
	name, attributes string
	activities       []int
	oneOf            string
}{
	6003: {"API Activity", ocsfBase + "actor:actor* api:api* src_endpoint:network_endpoint* dst_endpoint:network_endpoint", []int{0, 1, 2, 3, 4, 99}, ""},
	6002: {"Application Lifecycle", ocsfBase + "app:product*", []int{0, 1, 2, 3, 4, 99}, ""},
	3004: {"Entity Management", ocsfBase + "entity:managed_entity* actor:actor", []int{0, 1, 2, 3, 4, 99}, ""},
	3002: {"Authentication", ocsfBase + "user:user* service:service", []int{0, 1, 2, 3, 4, 5, 6, 99}, "service"},
	2004: {"Detection Finding", ocsfBase + "finding_info:finding_info* evidences:[]evidences action_id:i* disposition_id:i risk_score:i", []int{0, 1, 2, 3, 99}, ""},
}

// schemaErrors returns one message for each way in which an object violates its shape.
func schemaErrors(path string, s ocsfShape, object map[string]any) (all []string) {
	seen := map[string]bool{}
	for word := range strings.FieldsSeq(s.attributes) {
		name, kind, _ := strings.Cut(word, ":")
		kind, required := strings.CutSuffix(kind, "*")
		value, there := object[name]
		seen[name] = true
		switch {
		case !there && required:
			all = append(all, path+"."+name+" is required")
		case there:
			all = append(all, wrong(path+"."+name, kind, value)...)
		}
	}
	for name := range object {
		if !seen[name] {
			all = append(all, path+"."+name+" is not in the schema")
		}
	}
	one := strings.Fields(s.oneOf)
	if len(one) > 0 && !slices.ContainsFunc(one, func(name string) bool { _, there := object[name]; return there }) {
		all = append(all, path+" has none of "+s.oneOf)
	}
	return all
}

func wrong(path, kind string, value any) []string {
	if item, list := strings.CutPrefix(kind, "[]"); list {
		values, ok := value.([]any)
		if !ok || len(values) == 0 {
			return []string{path + " is no list"}
		}
		var all []string
		for i, v := range values {
			all = append(all, wrong(fmt.Sprintf("%s[%d]", path, i), item, v)...)
		}
		return all
	}
	n, number := value.(float64)
	text, isText := value.(string)
	object, isObject := value.(map[string]any)
	switch {
	case kind == "s" && (!isText || text == ""),
		kind == "i" && (!number || n != float64(int64(n))),
		kind == "t" && (!number || n < 1e12 || n > 1e13),
		len(kind) > 1 && !isObject:
		return []string{fmt.Sprintf("%s is %v", path, value)}
	case len(kind) > 1:
		return schemaErrors(path, ocsfObjects[kind], object)
	}
	return nil
}

func checkEvent(object map[string]any) []string {
	uid, _ := object["class_uid"].(float64)
	activity, _ := object["activity_id"].(float64)
	class, ok := ocsfClasses[int(uid)]
	if !ok {
		return []string{fmt.Sprintf("there is no class %v", object["class_uid"])}
	}
	all := schemaErrors(class.name, ocsfShape{class.attributes, class.oneOf}, object)
	same := func(name string, want any) {
		if fmt.Sprint(object[name]) != fmt.Sprint(want) {
			all = append(all, fmt.Sprintf("%s is %v, want %v", name, object[name], want))
		}
	}
	same("class_name", class.name)
	same("category_uid", int(uid)/1000)
	same("type_uid", int(uid)*100+int(activity))
	if !slices.Contains(class.activities, int(activity)) {
		all = append(all, fmt.Sprintf("%s has no activity %v", class.name, activity))
	}
	if s, _ := object["severity_id"].(float64); s < 1 || s > 5 {
		all = append(all, fmt.Sprintf("severity_id %v", s))
	}
	return all
}

func ocsfEvents(t *testing.T) (all []map[string]any) {
	entries := entriesOfAllKinds()
	for _, line := range lines(t, exported(t, export.OCSF, export.Options{Version: "0.9"}, entries...), len(entries)) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

func TestOCSF(t *testing.T) {
	entries, used := entriesOfAllKinds(), map[string]bool{}
	for i, object := range ocsfEvents(t) {
		for _, c := range checkEvent(object) {
			t.Errorf("%s %s: %s", entries[i].Kind, entries[i].Status, c)
		}
		used[fmt.Sprint(entries[i].Kind, " ", entries[i].Status, " ", object["type_uid"])] = true
	}
	got := strings.Join(slices.Sorted(maps.Keys(used)), "\n")
	if got != strings.TrimSpace(expectedTypes) {
		t.Errorf("the mapping is\n%s", got)
	}
}

// expectedTypes lists the kind, the status and the expected type_uid of each entry. The last two digits of
// type_uid are the activity, the others are the class.
const expectedTypes = `anomaly rate 200401
answer tool_error 600303
call ok 600302
call ok 600303
call ok 600304
clock  300403
decision approved 600399
decision denied 600399
end ok 600399
end timeout 600399
erasure ok 300404
file read 600302
file write 600303
gap cut 200401
login ok 300201
pin changed 300403
question  600399
refusal policy 200401
request  600399
retention ok 300404
reveal model 600302
search tools 600302
settings  300403
skill removed 300404
skill saved 300403
start  600203
stop  600204
task begun 600303
task discover 600303
task ok 600303
task queued 600301
task timeout 600303
token created 300401
token failed 300403
token revoked 300404
verdict ok 600399
verdict syntax 200401`

// TestOCSFCheck checks that the schema check of these tests detects events which violate the schema.
func TestOCSFCheck(t *testing.T) {
	for name, breaks := range map[string]func(map[string]any){
		"required":   func(o map[string]any) { delete(o, "time") },
		"type":       func(o map[string]any) { o["time"] = "now" },
		"nested":     func(o map[string]any) { delete(o["metadata"].(map[string]any), "version") },
		"unknown":    func(o map[string]any) { o["surprise"] = 1 },
		"class":      func(o map[string]any) { o["class_uid"] = 1. },
		"activity":   func(o map[string]any) { o["activity_id"] = 50. },
		"type_uid":   func(o map[string]any) { o["type_uid"] = 5. },
		"constraint": func(o map[string]any) { o["actor"] = map[string]any{} },
	} {
		o := ocsfEvents(t)[3]
		if breaks(o); len(checkEvent(o)) == 0 {
			t.Errorf("%s: nothing was found", name)
		}
	}
}

// TestTasksInOCSF checks that the events of a job contain its ID. It also checks that the end of a job has the same
// result and severity as the end of an execution.
func TestTasksInOCSF(t *testing.T) {
	want := map[string][3]float64{ // activity, status, severity
		"queued": {1, 0, 1}, "begun": {3, 0, 1}, "discover": {3, 0, 1}, "ok": {3, 1, 1}, "timeout": {3, 2, 3},
	}
	seen := 0
	for _, o := range ocsfEvents(t) {
		about := o["metadata"].(map[string]any)
		if about["event_code"] != string(core.EventTask) {
			continue
		}
		seen++
		status, _ := o["status_id"].(float64)
		got := [3]float64{o["activity_id"].(float64), status, o["severity_id"].(float64)}
		if code := o["status_code"].(string); got != want[code] {
			t.Errorf("%s: %v, want %v", code, got, want[code])
		}
		request, _ := o["api"].(map[string]any)["request"].(map[string]any)
		if about["correlation_uid"] != "t1" || request["uid"] != "t1" {
			t.Errorf("%v", o)
		}
	}
	if seen != len(want) {
		t.Errorf("%d entries of tasks", seen)
	}
}
