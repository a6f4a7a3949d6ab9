package export

import (
	"cmp"
	"encoding/json"

	"retort/internal/audit"
	"retort/internal/core"
)

// ocsfVersion is the version of the schema that events say they follow. They use nothing that
// later ones up to 1.8 have taken away or made narrower.
const ocsfVersion = "1.2.0"

// class represents an event class of the schema, with the activity of an entry in it.
type class struct {
	uid      int
	name     string
	activity int
	does     string
}

const (
	apiActivity      = 6003
	lifecycle        = 6002
	entityManagement = 3004
	authentication   = 3002
	detectionFinding = 2004
)

// The activities of API Activity and Entity Management.
const (
	unknown = 0
	creates = 1
	reads   = 2
	updates = 3
	deletes = 4
	other   = 99
)

// classOf returns the class that entries of a kind have:
//
//	start, stop                 Application Lifecycle: Start, Stop
//	request, question, decision
//	verdict that lets pass, end API Activity: Other
//	call, answer                API Activity: Read, Update or Delete, by the effect
//	search, reveal              API Activity: Read
//	file                        API Activity: Read or Update
//	settings, skill, pin, token, erasure, retention, clock
//	                            Entity Management
//	login                       Authentication: Logon
//	task                        API Activity: Create as it is queued, then Update
//	network, command            API Activity: Other
//	verdict, network, command that is refused; refusal, anomaly, gap
//	                            Detection Finding: Create
func classOf(e *audit.Entry, f *fact) class {
	api := func(activity int, does string) class { return class{apiActivity, "API Activity", activity, does} }
	entity := func(activity int, does string) class {
		return class{entityManagement, "Entity Management", activity, does}
	}
	switch e.Kind {
	case core.EventStart:
		return class{lifecycle, "Application Lifecycle", 3, "Start"}
	case core.EventStop:
		return class{lifecycle, "Application Lifecycle", 4, "Stop"}
	case core.EventCall, core.EventAnswer:
		switch f.Effect {
		case "read":
			return api(reads, "Read")
		case "write":
			return api(updates, "Update")
		case "destructive":
			return api(deletes, "Delete")
		}
		return api(unknown, "Unknown")
	case core.EventSearch, core.EventReveal:
		return api(reads, "Read")
	case core.EventFile:
		if e.Status == "write" {
			return api(updates, "Update")
		}
		return api(reads, "Read")
	case core.EventErasure, core.EventKept:
		return entity(deletes, "Delete")
	case core.EventSkill:
		if e.Status == "removed" {
			return entity(deletes, "Delete")
		}
		return entity(updates, "Update")
	case core.EventToken:
		switch e.Status {
		case "created":
			return entity(creates, "Create")
		case "revoked":
			return entity(deletes, "Delete")
		case "refused":
			return class{authentication, "Authentication", 1, "Logon"}
		}
		return entity(updates, "Update")
	case core.EventTask:
		if e.Status == string(core.TaskQueued) {
			return api(creates, "Create")
		}
		return api(updates, "Update")
	case core.EventSettings, core.EventPin, core.EventClock:
		return entity(updates, "Update")
	case core.EventLogin:
		return class{authentication, "Authentication", 1, "Logon"}
	}
	if finds(e) {
		return class{detectionFinding, "Detection Finding", 1, "Create"}
	}
	return api(other, string(e.Kind))
}

// finds reports whether something was refused, or is not as it should be.
func finds(e *audit.Entry) bool {
	switch e.Kind {
	case core.EventRefusal, core.EventAnomaly, core.EventGap:
		return true
	case core.EventNetwork, core.EventCommand:
		return e.Status == "refused"
	case core.EventVerdict:
		return e.Status != "ok"
	}
	return false
}

// event represents an event of the schema, as far as entries fill it.
type event struct {
	ActivityID   int      `json:"activity_id"`
	ActivityName string   `json:"activity_name"`
	CategoryUID  int      `json:"category_uid"`
	ClassUID     int      `json:"class_uid"`
	ClassName    string   `json:"class_name"`
	TypeUID      int      `json:"type_uid"`
	SeverityID   int      `json:"severity_id"`
	Time         int64    `json:"time"` // milliseconds since 1970
	Message      string   `json:"message"`
	StatusID     int      `json:"status_id,omitempty"`
	StatusCode   string   `json:"status_code,omitempty"`
	Metadata     metadata `json:"metadata"`

	Actor       *actor     `json:"actor,omitempty"`
	API         *api       `json:"api,omitempty"`
	Source      *endpoint  `json:"src_endpoint,omitempty"`
	Destination *endpoint  `json:"dst_endpoint,omitempty"`
	App         *product   `json:"app,omitempty"`
	Entity      *entity    `json:"entity,omitempty"`
	User        *user      `json:"user,omitempty"`
	Service     *service   `json:"service,omitempty"`
	Finding     *finding   `json:"finding_info,omitempty"`
	Evidences   []evidence `json:"evidences,omitempty"`
	ActionID    *int       `json:"action_id,omitempty"`
	Disposition int        `json:"disposition_id,omitempty"`
	Risk        *int       `json:"risk_score,omitempty"`

	Unmapped unmapped `json:"unmapped"`
}

type (
	product struct {
		Name    string `json:"name"`
		Vendor  string `json:"vendor_name"`
		Version string `json:"version,omitempty"`
	}
	metadata struct {
		Version     string   `json:"version"`
		Product     product  `json:"product"`
		UID         string   `json:"uid"`
		Sequence    int64    `json:"sequence"`
		Log         string   `json:"log_name"`
		Code        string   `json:"event_code"`
		Correlation string   `json:"correlation_uid,omitempty"`
		Profiles    []string `json:"profiles,omitempty"`
	}
	user struct {
		Name string `json:"name"`
		Type int    `json:"type_id"`
	}
	session struct {
		UID string `json:"uid"`
	}
	actor struct {
		User    *user    `json:"user,omitempty"`
		Session *session `json:"session,omitempty"`
		App     string   `json:"app_name,omitempty"`
	}
	service struct {
		Name string `json:"name"`
	}
	request struct {
		UID string `json:"uid"`
	}
	api struct {
		Operation string   `json:"operation"`
		Service   *service `json:"service,omitempty"`
		Request   *request `json:"request,omitempty"`
	}
	endpoint struct {
		Name    string `json:"name,omitempty"`
		Service string `json:"svc_name,omitempty"`
	}
	entity struct {
		Name    string `json:"name"`
		Type    string `json:"type"`
		Version string `json:"version,omitempty"`
	}
	finding struct {
		UID   string   `json:"uid"`
		Title string   `json:"title"`
		Types []string `json:"types"`
	}
	evidence struct {
		Actor *actor `json:"actor,omitempty"`
		API   *api   `json:"api,omitempty"`
	}
	unmapped struct {
		Chain    string          `json:"chain"`
		Hash     string          `json:"hash"`
		Millis   float64         `json:"duration_ms,omitempty"`
		Bytes    int64           `json:"bytes,omitempty"`
		Returned int64           `json:"tokens_returned,omitempty"`
		Avoided  int64           `json:"tokens_avoided,omitempty"`
		Facts    json.RawMessage `json:"facts,omitempty"`
		Body     json.RawMessage `json:"body,omitempty"`
		Erased   bool            `json:"erased,omitempty"`
	}
)

// mapper makes events of entries.
type mapper struct{ version string }

func (m mapper) event(e *audit.Entry) *event {
	f := factsOf(e)
	c := classOf(e, &f)
	out := &event{
		ActivityID: c.activity, ActivityName: c.does, CategoryUID: c.uid / 1000, ClassUID: c.uid, ClassName: c.name, TypeUID: 100*c.uid + c.activity,
		SeverityID: severityID(severity(e, &f)), Time: e.At.UnixMilli(), Message: summary(e), StatusCode: e.Status,
		Metadata: metadata{Version: ocsfVersion, Product: m.product(), UID: placeOf(e), Sequence: e.Seq, Log: "retort audit", Code: string(e.Kind), Correlation: cmp.Or(e.Execution, f.Task)},
		Unmapped: unmapped{e.Chain, e.Hash, e.Millis, e.Bytes, e.Returned, e.Avoided, e.Facts, e.Body, e.Erased},
	}
	if ok, known := succeeded(e); known {
		out.StatusID = 2 - btoi(ok)
	}
	by := &actor{User: userOf(e), App: f.Client}
	if e.Session != "" {
		by.Session = &session{e.Session}
	}
	switch c.uid {
	case apiActivity:
		out.Actor, out.API, out.Source = by, apiOf(e, &f), &endpoint{Name: cmp.Or(f.Client, "MCP client")}
		if e.Server != "" {
			out.Destination = &endpoint{Service: e.Server}
		}
	case lifecycle:
		app := m.product()
		out.App = &app
	case entityManagement:
		out.Entity, out.Actor = entityOf(e, &f), by
	case authentication:
		out.User, out.Service = by.User, &service{cmp.Or(e.Server, "unknown")}
	case detectionFinding:
		m.found(out, e, &f, by)
	}
	return out
}

func (m mapper) product() product {
	return product{Name: "Retort", Vendor: "Retort", Version: m.version}
}

// found fills a finding. The profile security_control says what became of it.
func (m mapper) found(out *event, e *audit.Entry, f *fact, by *actor) {
	const allowed, denied, blocked, delayed, detected = 1, 2, 2, 14, 15
	action := denied
	out.Disposition = blocked
	switch {
	case e.Kind == core.EventGap, e.Kind == core.EventAnomaly && f.Action != "stop" && f.Action != "approve":
		action, out.Disposition = allowed, detected
	case f.Action == "approve":
		action, out.Disposition = unknown, delayed
	}
	out.Metadata.Profiles = []string{"security_control"}
	out.ActionID, out.StatusID = &action, 1 // new
	out.Finding = &finding{UID: placeOf(e), Title: summary(e), Types: []string{string(e.Kind)}}
	out.Evidences = []evidence{{Actor: by, API: apiOf(e, f)}}
	if e.Risk != nil {
		out.Risk = e.Risk
	}
}

func userOf(e *audit.Entry) *user {
	name := cmp.Or(e.Principal, e.UserID)
	if name == "" {
		return &user{Name: "(no principal)"}
	}
	return &user{Name: name, Type: 1}
}

func apiOf(e *audit.Entry, f *fact) *api {
	a := &api{Operation: string(e.Kind)}
	if e.Server != "" {
		a.Operation, a.Service = toolOf(e), &service{e.Server}
	}
	if id := cmp.Or(e.Execution, f.Task); id != "" {
		a.Request = &request{id}
	}
	return a
}

// entityOf returns what was changed.
func entityOf(e *audit.Entry, f *fact) *entity {
	switch e.Kind {
	case core.EventSkill:
		version, _ := f.Version.(string)
		return &entity{cmp.Or(f.Skill, "skill"), "skill", version}
	case core.EventPin:
		return &entity{toolOf(e), "tool definition", ""}
	case core.EventErasure:
		return &entity{"personal data", "erasure", ""}
	case core.EventToken:
		return &entity{cmp.Or(f.Token, "token"), "access token", ""}
	case core.EventKept:
		return &entity{"old entries", "retention", ""}
	}
	return &entity{string(e.Kind), "configuration", ""}
}

// severityID returns the schema's: 1 informational to 5 critical.
func severityID(severity int) int {
	switch {
	case severity <= 1:
		return 1
	case severity <= 3:
		return 2
	case severity <= 6:
		return 3
	case severity <= 8:
		return 4
	}
	return 5
}
