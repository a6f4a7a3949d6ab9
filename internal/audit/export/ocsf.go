package export

import (
	"cmp"
	"encoding/json"

	"retort/internal/audit"
	"retort/internal/core"
)

// ocsfVersion is the version of the OCSF schema that events declare. Events use only those parts of this version that
// later versions, up to 1.8, have neither removed nor restricted.
const ocsfVersion = "1.2.0"

// eventClass holds the event class of the OCSF schema and the activity that describe an entry.
type eventClass struct {
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

// These activities apply to the classes API Activity and Entity Management. Their numbers come from the OCSF schema.
const (
	unknown = 0
	creates = 1
	reads   = 2
	updates = 3
	deletes = 4
	other   = 99
)

// classOf returns the OCSF event class of an entry, by its kind:
//
//	start, stop                 Application Lifecycle: Start, Stop
//	request, question, decision, end
//	                            API Activity: Other
//	verdict that lets a program pass
//	                            API Activity: Other
//	call, answer                API Activity: Read, Update or Delete, by the effect
//	search, reveal              API Activity: Read
//	file                        API Activity: Read or Update
//	settings, skill, pin, token, erasure, retention, clock
//	                            Entity Management
//	login                       Authentication: Logon
//	task                        API Activity: Create when it is queued, later Update
//	network, command            API Activity: Other
//	verdict that refuses a program; network or command that is refused;
//	refusal, anomaly, gap
//	                            Detection Finding: Create
func classOf(e *audit.Entry, f *entryFacts) eventClass {
	api := func(activity int, does string) eventClass {
		return eventClass{apiActivity, "API Activity", activity, does}
	}
	entity := func(activity int, does string) eventClass {
		return eventClass{entityManagement, "Entity Management", activity, does}
	}
	switch e.Kind {
	case core.EventStart:
		return eventClass{lifecycle, "Application Lifecycle", 3, "Start"}
	case core.EventStop:
		return eventClass{lifecycle, "Application Lifecycle", 4, "Stop"}
	case core.EventCall, core.EventAnswer:
		switch f.Effect {
		case "read":
			return api(reads, "Read")
		case "write":
			return api(updates, "Update")
		case "irreversible":
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
		return tokenClass(e.Status)
	case core.EventTask:
		if e.Status == string(core.TaskQueued) {
			return api(creates, "Create")
		}
		return api(updates, "Update")
	case core.EventSettings, core.EventPin, core.EventClock:
		return entity(updates, "Update")
	case core.EventLogin:
		return eventClass{authentication, "Authentication", 1, "Logon"}
	}
	if isFinding(e) {
		return eventClass{detectionFinding, "Detection Finding", 1, "Create"}
	}
	return api(other, string(e.Kind))
}

// tokenClass returns the event class of an entry about an access token, by the entry's status.
func tokenClass(status string) eventClass {
	entity := func(activity int, does string) eventClass {
		return eventClass{entityManagement, "Entity Management", activity, does}
	}
	switch status {
	case "created":
		return entity(creates, "Create")
	case "revoked":
		return entity(deletes, "Delete")
	case "refused":
		return eventClass{authentication, "Authentication", 1, "Logon"}
	}
	return entity(updates, "Update")
}

// isFinding reports whether an entry records a refusal, an anomaly or a gap in the audit log.
func isFinding(e *audit.Entry) bool {
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

// ocsfEvent holds an OCSF event, with only those attributes that an entry can fill.
type ocsfEvent struct {
	ActivityID   int          `json:"activity_id"`
	ActivityName string       `json:"activity_name"`
	CategoryUID  int          `json:"category_uid"`
	ClassUID     int          `json:"class_uid"`
	ClassName    string       `json:"class_name"`
	TypeUID      int          `json:"type_uid"`
	SeverityID   int          `json:"severity_id"`
	Time         int64        `json:"time"` // milliseconds since 1970
	Message      string       `json:"message"`
	StatusID     int          `json:"status_id,omitempty"`
	StatusCode   string       `json:"status_code,omitempty"`
	Metadata     ocsfMetadata `json:"metadata"`

	Actor       *ocsfActor     `json:"actor,omitempty"`
	API         *ocsfAPI       `json:"api,omitempty"`
	Source      *ocsfEndpoint  `json:"src_endpoint,omitempty"`
	Destination *ocsfEndpoint  `json:"dst_endpoint,omitempty"`
	App         *ocsfProduct   `json:"app,omitempty"`
	Entity      *ocsfEntity    `json:"entity,omitempty"`
	User        *ocsfUser      `json:"user,omitempty"`
	Service     *ocsfService   `json:"service,omitempty"`
	Finding     *ocsfFinding   `json:"finding_info,omitempty"`
	Evidences   []ocsfEvidence `json:"evidences,omitempty"`
	ActionID    *int           `json:"action_id,omitempty"`
	Disposition int            `json:"disposition_id,omitempty"`
	Risk        *int           `json:"risk_score,omitempty"`

	Unmapped ocsfUnmapped `json:"unmapped"`
}

type (
	ocsfProduct struct {
		Name    string `json:"name"`
		Vendor  string `json:"vendor_name"`
		Version string `json:"version,omitempty"`
	}
	ocsfMetadata struct {
		Version     string      `json:"version"`
		Product     ocsfProduct `json:"product"`
		UID         string      `json:"uid"`
		Sequence    int64       `json:"sequence"`
		Log         string      `json:"log_name"`
		Code        string      `json:"event_code"`
		Correlation string      `json:"correlation_uid,omitempty"`
		Profiles    []string    `json:"profiles,omitempty"`
	}
	ocsfUser struct {
		Name string `json:"name"`
		Type int    `json:"type_id"`
	}
	ocsfSession struct {
		UID string `json:"uid"`
	}
	ocsfActor struct {
		User    *ocsfUser    `json:"user,omitempty"`
		Session *ocsfSession `json:"session,omitempty"`
		App     string       `json:"app_name,omitempty"`
	}
	ocsfService struct {
		Name string `json:"name"`
	}
	ocsfRequest struct {
		UID string `json:"uid"`
	}
	ocsfAPI struct {
		Operation string       `json:"operation"`
		Service   *ocsfService `json:"service,omitempty"`
		Request   *ocsfRequest `json:"request,omitempty"`
	}
	ocsfEndpoint struct {
		Name    string `json:"name,omitempty"`
		Service string `json:"svc_name,omitempty"`
	}
	ocsfEntity struct {
		Name    string `json:"name"`
		Type    string `json:"type"`
		Version string `json:"version,omitempty"`
	}
	ocsfFinding struct {
		UID   string   `json:"uid"`
		Title string   `json:"title"`
		Types []string `json:"types"`
	}
	ocsfEvidence struct {
		Actor *ocsfActor `json:"actor,omitempty"`
		API   *ocsfAPI   `json:"api,omitempty"`
	}
	ocsfUnmapped struct {
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

// ocsfMapper converts entries to OCSF events, which name Retort and its version as the product.
type ocsfMapper struct{ version string }

func (m ocsfMapper) toEvent(e *audit.Entry) *ocsfEvent {
	f := factsOf(e)
	c := classOf(e, &f)
	out := &ocsfEvent{
		ActivityID: c.activity, ActivityName: c.does, CategoryUID: c.uid / 1000, ClassUID: c.uid, ClassName: c.name,
		TypeUID:    100*c.uid + c.activity,
		SeverityID: severityID(severityOf(e, &f)), Time: e.At.UnixMilli(), Message: summaryOf(e), StatusCode: e.Status,
		Metadata: ocsfMetadata{
			Version: ocsfVersion, Product: m.newProduct(), UID: placeOf(e), Sequence: e.Seq, Log: "retort audit",
			Code: string(e.Kind), Correlation: cmp.Or(e.Execution, f.Task),
		},
		Unmapped: ocsfUnmapped{e.Chain, e.Hash, e.Millis, e.Bytes, e.Returned, e.Avoided, e.Facts, e.Body, e.Erased},
	}
	if ok, known := hasSucceeded(e); known {
		out.StatusID = 2 - boolToInt(ok)
	}
	by := &ocsfActor{User: userOf(e), App: f.Client}
	if e.Session != "" {
		by.Session = &ocsfSession{e.Session}
	}
	switch c.uid {
	case apiActivity:
		out.Actor, out.API, out.Source = by, apiOf(e, &f), &ocsfEndpoint{Name: cmp.Or(f.Client, "MCP client")}
		if e.Server != "" {
			out.Destination = &ocsfEndpoint{Service: e.Server}
		}
	case lifecycle:
		app := m.newProduct()
		out.App = &app
	case entityManagement:
		out.Entity, out.Actor = entityOf(e, &f), by
	case authentication:
		out.User, out.Service = by.User, &ocsfService{cmp.Or(e.Server, "unknown")}
	case detectionFinding:
		m.fillFinding(out, e, &f, by)
	}
	return out
}

func (m ocsfMapper) newProduct() ocsfProduct {
	return ocsfProduct{Name: "Retort", Vendor: "Retort", Version: m.version}
}

// fillFinding sets the attributes of a finding, which records a refusal, an anomaly or a gap. The profile
// security_control adds whether the action was allowed or blocked.
func (m ocsfMapper) fillFinding(out *ocsfEvent, e *audit.Entry, f *entryFacts, by *ocsfActor) {
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
	out.Finding = &ocsfFinding{UID: placeOf(e), Title: summaryOf(e), Types: []string{string(e.Kind)}}
	out.Evidences = []ocsfEvidence{{Actor: by, API: apiOf(e, f)}}
	if e.Risk != nil {
		out.Risk = e.Risk
	}
}

func userOf(e *audit.Entry) *ocsfUser {
	name := cmp.Or(e.Principal, e.UserID)
	if name == "" {
		return &ocsfUser{Name: "(no principal)"}
	}
	return &ocsfUser{Name: name, Type: 1}
}

func apiOf(e *audit.Entry, f *entryFacts) *ocsfAPI {
	a := &ocsfAPI{Operation: string(e.Kind)}
	if e.Server != "" {
		a.Operation, a.Service = toolOf(e), &ocsfService{e.Server}
	}
	if id := cmp.Or(e.Execution, f.Task); id != "" {
		a.Request = &ocsfRequest{id}
	}
	return a
}

// entityOf returns the entity whose change an entry records, such as a skill or a tool definition.
func entityOf(e *audit.Entry, f *entryFacts) *ocsfEntity {
	switch e.Kind {
	case core.EventSkill:
		version, _ := f.Version.(string)
		return &ocsfEntity{cmp.Or(f.Skill, "skill"), "skill", version}
	case core.EventPin:
		return &ocsfEntity{toolOf(e), "tool definition", ""}
	case core.EventErasure:
		return &ocsfEntity{"personal data", "erasure", ""}
	case core.EventToken:
		return &ocsfEntity{cmp.Or(f.Token, "token"), "access token", ""}
	case core.EventKept:
		return &ocsfEntity{"old entries", "retention", ""}
	}
	return &ocsfEntity{string(e.Kind), "configuration", ""}
}

// severityID converts a severity from 0 to 10 to the OCSF scale, which goes from 1 (informational) to 5 (critical).
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
