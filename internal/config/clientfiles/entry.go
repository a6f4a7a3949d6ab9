package clientfiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"retort/internal/config"
	"retort/internal/core"
)

// fieldMeaning says what a field of a client's entry for a server means. The translation to Retort's server file
// depends on it.
type fieldMeaning uint8

const (
	extraField    fieldMeaning = iota // kept in the entry, without effect in Retort
	ignoredField                      // dropped, because it only concerns the client
	typeField                         // transport: stdio, http or sse; some clients write local or remote
	commandField                      // a string, a list with the arguments, or an object
	ofArgs                            //
	ofEnv                             //
	envFileField                      // path of a file with environment variables
	envNamesField                     // names of environment variables that the server inherits
	// keyringField lists environment variables whose values the client keeps in the system's keyring.
	keyringField
	ofCwd             //
	ofURL             //
	httpURLField      // URL of a Streamable HTTP server
	ofHeaders         //
	envHeadersField   // object that maps a header to the environment variable with its value
	bearerField       // name of the environment variable with the bearer token
	millisecondsField // timeout of a call, in milliseconds
	secondsField      // timeout of a call, in seconds
	ofDisabled        //
	ofEnabled         //
	allowField        // names of the only tools that the client offers
	denyField         // names of tools that the client does not offer
)

// serverEntry holds the entry of a server in the form in which Retort's server file stores it.
type serverEntry struct {
	kind     string // transport: "", "stdio", "http" or "sse"
	command  string
	args     []string
	env      map[string]string
	cwd      string
	url      string
	headers  map[string]string
	timeout  int64 // of a call, in milliseconds
	disabled bool
	envFile  string
	allow    []string // names of tools
	deny     []string
	extra    map[string]any
}

// toJSON returns the entry as JSON for Retort's server file.
func (e serverEntry) toJSON() (json.RawMessage, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	put := func(key string, value any, write bool) error {
		if !write {
			return nil
		}
		text, err := marshalCompact(value)
		if err != nil {
			return err
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		name, _ := marshalCompact(key)
		b.Write(name)
		b.WriteByte(':')
		b.Write(text)
		return nil
	}
	err := firstError(
		put("type", e.kind, e.kind != ""), put("command", e.command, e.command != ""), put("args", e.args, len(e.args) > 0),
		put("env", e.env, len(e.env) > 0), put(
			"envFile", e.envFile, e.envFile != "",
		), put("cwd", e.cwd, e.cwd != ""), put("url", e.url, e.url != ""),
		put("headers", e.headers, len(e.headers) > 0), put("timeout", e.timeout, e.timeout > 0), put("disabled", true, e.disabled),
		put("allow", e.allow, len(e.allow) > 0), put("deny", e.deny, len(e.deny) > 0),
	)
	for _, key := range slices.Sorted(maps.Keys(e.extra)) {
		err = firstError(err, put(key, e.extra[key], true))
	}
	b.WriteByte('}')
	return b.Bytes(), err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// transportName returns the name of the transport to show to users.
func (e serverEntry) transportName() string {
	switch {
	case e.command != "":
		return "stdio"
	case e.kind != "":
		return e.kind
	}
	return "http or sse"
}

// entryReader holds the state of the translation of one client's entry.
type entryReader struct {
	client  *Client
	t       *placeholderTranslator
	e       serverEntry
	problem string // why the entry cannot be imported; "": it can
	unused  []string
}

// readEntry translates a client's entry for a server to the form of Retort's server file. If the entry cannot be
// imported, wrong is the reason; otherwise it is "".
func (c *Client) readEntry(value json.RawMessage, t *placeholderTranslator) (e serverEntry, wrong string) {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	var fields map[string]any
	if err := dec.Decode(&fields); err != nil || fields == nil {
		return serverEntry{}, "it is not an object"
	}
	if c.problem != nil {
		if why := c.problem(fields); why != "" {
			return serverEntry{}, why
		}
	}
	r := &entryReader{client: c, t: t}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if fields[key] != nil {
			r.readField(key, c.fields[key], fields[key])
		}
	}
	if len(r.unused) > 0 {
		t.addNote("kept, but it has no effect: %s", strings.Join(r.unused, ", "))
	}
	r.normalizeKind()
	return r.e, r.problem
}

func (r *entryReader) rejectEntry(format string, args ...any) {
	if r.problem == "" {
		r.problem = fmt.Sprintf(format, args...)
	}
}

func (r *entryReader) readField(key string, m fieldMeaning, v any) {
	switch m {
	case ignoredField:
	case typeField:
		r.e.kind = r.scalarText(key, v)
	case commandField:
		r.readCommand(key, v)
	case ofArgs:
		r.e.args = append(r.e.args, r.readTexts(key, v)...)
	case ofEnv:
		r.readMap(&r.e.env, key, v, r.t.translateText)
	case envNamesField, keyringField:
		r.envNames(key, m, v)
	case ofCwd:
		r.e.cwd = r.t.translateText(r.scalarText(key, v))
	case ofURL, httpURLField:
		r.e.url = r.t.translateText(r.scalarText(key, v))
		if m == httpURLField {
			r.e.kind = "http"
		}
	case ofHeaders:
		r.readHeaders(key, v)
	case envHeadersField:
		r.readMap(&r.e.headers, key, v, variableReference)
	case bearerField:
		r.readMap(&r.e.headers, key, map[string]any{"Authorization": v}, func(s string) string { return "Bearer " + variableReference(s) })
	case millisecondsField, secondsField:
		r.readTimeout(key, m, v)
	case ofDisabled, ofEnabled:
		r.readDisabled(key, m, v)
	case envFileField:
		r.e.envFile = r.t.translateText(r.scalarText(key, v))
	case allowField:
		r.e.allow = append(r.e.allow, r.readTexts(key, v)...)
	case denyField:
		r.e.deny = append(r.e.deny, r.readTexts(key, v)...)
	default:
		r.keepUnknown(key, v)
	}
}

// keepUnknown copies a field of unknown meaning to the entry for Retort's server file, where it has no effect. It
// drops the field if Retort would give it another meaning.
func (r *entryReader) keepUnknown(key string, v any) {
	if slices.Contains(retortFields, key) {
		r.t.addNote("%s was left out: it has another meaning here", key)
		return
	}
	if r.e.extra == nil {
		r.e.extra = map[string]any{}
	}
	r.e.extra[key] = v
	r.unused = append(r.unused, key)
}

// retortFields lists the fields that have a meaning in Retort's own entries. If a client gives a field of this
// name another meaning, the field must not be copied to Retort's server file.
var retortFields = []string{
	"type", "transport", "command", "args", "env", "envFile", "cwd", "url", "serverUrl", "httpUrl", "headers", "timeout", "disabled",
	"allow", "deny", "includeTools", "excludeTools", "enabled_tools", "disabled_tools", "available_tools", "disabledTools",
}

// scalarText returns a string, number or boolean as a string.
func (r *entryReader) scalarText(key string, v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number, bool:
		return fmt.Sprint(v)
	}
	r.rejectEntry("%s is not a string", key)
	return ""
}

func (r *entryReader) readTexts(key string, v any) []string {
	items, ok := v.([]any)
	if !ok {
		r.rejectEntry("%s is not a list", key)
	}
	var texts []string
	for _, item := range items {
		texts = append(texts, r.t.translateText(r.scalarText(key, item)))
	}
	return texts
}

// readMap adds the members of v, an object whose values are strings, to the map in the argument to. It passes each
// value through translate.
func (r *entryReader) readMap(to *map[string]string, key string, v any, translate func(string) string) {
	o, ok := v.(map[string]any)
	if !ok {
		r.rejectEntry("%s is not an object", key)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if o[name] == nil {
			r.t.addNote("%s.%s is null and was omitted", key, name)
			continue
		}
		if *to == nil {
			*to = map[string]string{}
		}
		(*to)[name] = translate(r.scalarText(key+"."+name, o[name]))
	}
}

func (r *entryReader) readHeaders(key string, v any) {
	t := r.t
	if r.client.inHeaders {
		t = &placeholderTranslator{placeholderDialect: placeholderDialect{braces: true, dollar: true}}
	}
	r.readMap(&r.e.headers, key, v, t.translateText)
}

// variableReference returns a placeholder, such as ${TOKEN}, for an environment variable that a client's entry names
// without a placeholder. The placeholder for an invalid name is refused when the server starts.
func variableReference(name string) string {
	if variableName.FindString(name) == name {
		return "${" + name + "}"
	}
	return "${env:" + name + "}" // refused by name when the server starts
}

func (r *entryReader) envNames(key string, m fieldMeaning, v any) {
	items, ok := v.([]any)
	if !ok {
		r.rejectEntry("%s is not a list", key)
	}
	for _, item := range items {
		if o, ok := item.(map[string]any); ok {
			item = o["name"]
		}
		name := r.scalarText(key, item)
		r.readMap(&r.e.env, key, map[string]any{name: name}, variableReference)
		if m == keyringField {
			r.t.addNote("set %s; %s keeps its value in its keyring", name, r.client.Title)
		}
	}
}

// readCommand reads the three forms of a command that clients use: a string, a list with the arguments, or an object.
func (r *entryReader) readCommand(key string, v any) {
	switch v := v.(type) {
	case []any:
		if words := r.readTexts(key, v); len(words) > 0 {
			r.e.command = words[0]
			r.e.args = append(words[1:], r.e.args...)
		}
	case map[string]any: // Zed, formerly
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if v[k] != nil {
				r.readField(k, r.client.fields[k], v[k])
			}
		}
	default:
		r.e.command = r.t.translateText(r.scalarText(key, v))
	}
}

func (r *entryReader) readTimeout(key string, m fieldMeaning, v any) {
	n, ok := v.(json.Number)
	seconds, err := n.Float64()
	if !ok || err != nil || seconds < 0 || seconds > 1e9 {
		r.t.addNote("%s is not a time and was omitted", key)
		return
	}
	if m == secondsField {
		seconds *= 1000
	}
	r.e.timeout = int64(seconds)
}

func (r *entryReader) readDisabled(key string, m fieldMeaning, v any) {
	b, ok := v.(bool)
	if !ok {
		r.rejectEntry("%s must be true or false", key)
	}
	r.e.disabled = r.e.disabled || b == (m == ofDisabled)
}

var allPunctuation = regexp.MustCompile(`[-_]`)

// normalizeKind converts the kind of the entry, which is its transport, to the name that Retort uses for it. It drops
// a transport that follows from the other fields, and refuses an entry whose fields contradict each other.
func (r *entryReader) normalizeKind() {
	switch kind := allPunctuation.ReplaceAllString(strings.ToLower(r.e.kind), ""); kind {
	case "", "remote":
		r.e.kind = ""
	case "stdio", "local":
		r.e.kind = ""
		if r.e.command == "" {
			r.rejectEntry("the command is missing")
		}
	case "http", "streamablehttp":
		r.e.kind = "http"
	case "sse":
		r.e.kind = "sse"
	default:
		r.rejectEntry("the transport %q is not known", r.e.kind)
	}
	switch {
	case r.e.command == "" && r.e.url == "":
		r.rejectEntry("it has neither a command nor a URL")
	case r.e.command != "" && r.e.url != "":
		r.rejectEntry("it has both a command and a URL")
	case r.e.command != "" && r.e.kind != "":
		r.rejectEntry("it has a command, but the transport %s", r.e.kind)
	}
}

// invalidNameReason returns why a server's name cannot be written to Retort's server file, or "" if it can.
func invalidNameReason(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "its name is empty"
	case len(name) > 128:
		return "its name is longer than 128 bytes"
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || core.IsInvisible(r) }):
		return "its name contains control characters or invisible characters"
	case !isText(name):
		return "its name is not UTF-8"
	}
	return ""
}

func isText(s string) bool {
	return strings.ToValidUTF8(s, "") == s && !strings.ContainsRune(s, '\ufffd')
}

// startsRetort reports whether an entry starts Retort. The entry that install has written is recognised even if its
// arguments were changed after the install.
func (e serverEntry) startsRetort(name string) bool {
	ours := name == ourName && slices.Contains(e.args, "serve") && slices.Contains(e.args, "--config")
	return e.command != "" && (ours || config.IsRetort(e.command, e.args))
}

var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)key|token|secret|passw|auth|credential|cookie`)
})

// secretValues returns the values that look like credentials and are written in plain text, not as variables.
func (e serverEntry) secretValues() []string {
	var found []string
	for _, m := range []map[string]string{e.env, e.headers} {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if v := m[name]; secretName().MatchString(name) && v != "" && !strings.Contains(v, "${") {
				found = append(found, v)
			}
		}
	}
	return found
}
