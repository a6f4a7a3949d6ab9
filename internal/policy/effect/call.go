package effect

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"retort/internal/base/jsonscan"
	"retort/internal/core"
)

// EffectJudge determines the effect of each call of one tool. It is safe for concurrent use.
type EffectJudge struct {
	effect   core.EffectInfo
	stated   core.EffectGrade // what the words of the tool's name show
	database bool             // the tool says that it speaks to a database
	spoken   bool             // it turns questions in plain words into queries
	runs     bool             // its effect is that it runs what it is given, such as a query
	raises   bool             // a call with an argument of the schema can be irreversible
	fixed    bool             // a person has stated the effect
	choices  map[string]bool  // arguments of which the schema lists the values
	queries  map[string]bool  // arguments that the schema says are queries
}

// NewJudge returns an EffectJudge for a tool. If trusted is true, the tool's annotations may lower its effect.
func NewJudge(t *core.Tool, trusted bool) *EffectJudge {
	j := &EffectJudge{effect: OfTool(t, trusted), choices: map[string]bool{}, queries: map[string]bool{}}
	about := t.Name + " " + t.Server + " " + t.Title + " " + t.Description[:min(len(t.Description), 2<<10)]
	j.stated, _ = statedGrade(splitWords(t.Name))
	j.database = saysDatabase(splitWords(about))
	j.spoken = j.database && strings.Contains(strings.ToLower(about), "natural language")
	name := judgeName(t.Name)
	j.runs = running[name.verb] || name.kind == core.EffectRead || runsQuery(splitWords(t.Description[:min(len(t.Description), 256)]))
	var schema struct {
		Properties map[string]struct {
			Title, Description string
			Enum               []any
		}
	}
	if json.Unmarshal(t.InputSchema, &schema) != nil {
		return j
	}
	for key, p := range schema.Properties {
		j.raises = j.raises || j.canRaise(key, p.Enum)
		j.choices[key] = len(p.Enum) > 0
		if saysDatabase(splitWords(p.Title + " " + p.Description)) {
			j.queries[key] = true
		}
	}
	return j
}

// canRaise reports whether the argument with this name can make a call irreversible. values lists its values if they
// are known.
func (j *EffectJudge) canRaise(key string, values []any) bool {
	words := splitWords(key)
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	if len(values) > 0 {
		return actions[last] && slices.ContainsFunc(values, func(v any) bool {
			name, ok := v.(string)
			return ok && judgeName(name).kind == core.EffectIrreversible
		})
	}
	return sure[last] || commands[last] || last == "method" || j.database && carriers[last]
}

// VariesBy reports whether the effect of a call can be milder than the effect of the tool, and whether an argument of
// the tool's schema can make a call irreversible.
func (j *EffectJudge) VariesBy() (milder, graver bool) {
	return j.database && j.runs && !j.fixed, j.raises
}

// FixEffect replaces the effect of the tool by one that a person has stated. Arguments that name an action can still
// make the effect of a call more severe.
func (j *EffectJudge) FixEffect(e core.EffectInfo) { j.effect, j.fixed = e, true }

// saysDatabase reports whether one of the words refers to a database or a query language.
func saysDatabase(words []string) bool {
	for _, w := range words {
		if databases[w] {
			return true
		}
	}
	return false
}

// ToolEffect returns the effect of the tool as long as the arguments are not known.
func (j *EffectJudge) ToolEffect() core.EffectInfo { return j.effect }

// CallEffect returns the effect of a call with these arguments, a JSON object. An argument that names an action, such
// as a query, an HTTP method or a command, can make the effect more severe than the effect of the tool. Arguments can
// make the effect milder only if the tool runs queries, and if every query in the arguments is known to only read.
func (j *EffectJudge) CallEffect(args json.RawMessage) core.EffectInfo {
	w := argumentWalk{judge: j, worst: textJudgement{kind: core.EffectRead}, words: map[string][]string{}}
	w.judgeDocument(args, "", 0)
	if j.fixed {
		w.grade = core.GradeNone // what the name of an argument suggests is known to the person
	}
	worst := core.EffectInfo{Kind: w.worst.kind, Reason: w.effectReason()}
	if worst.Kind == core.EffectIrreversible {
		worst.Grade = max(w.worst.grade, w.grade, j.stated)
	}
	switch {
	case worst.Kind > j.effect.Kind:
		return worst
	case worst.Kind < j.effect.Kind && !j.fixed && j.database && j.runs && w.queries > 0 && w.others == 0:
		return worst
	}
	return j.withArguments(worst, w.grade, w.graded)
}

// withArguments returns the effect of the tool with the grade of a call's arguments, if that is graver: the grade of
// what they do, or of the argument key, which shows it by its name.
func (j *EffectJudge) withArguments(worst core.EffectInfo, keyGrade core.EffectGrade, key string) core.EffectInfo {
	e := j.effect
	switch {
	case e.Kind != core.EffectIrreversible || max(worst.Grade, keyGrade) <= e.Grade:
		return e
	case worst.Grade >= keyGrade:
		e.Grade, e.Reason = worst.Grade, worst.Reason
	default:
		e.Grade, e.Reason = keyGrade, e.Reason+", and it has the argument "+key
	}
	return e
}

// argumentWalk walks through the arguments of a call and keeps the most severe effect that it finds.
type argumentWalk struct {
	judge   *EffectJudge
	worst   textJudgement
	key     string              // of the argument that decides
	queries int                 // arguments that were judged as queries
	others  int                 // strings that were not, and could be anything
	words   map[string][]string // of keys: arguments repeat them
	grade   core.EffectGrade    // the gravest that the name of an argument shows
	graded  string              // that argument
}

// splitKey returns the words of an argument's name. It caches them, because names repeat in lists.
func (w *argumentWalk) splitKey(key string) []string {
	words, ok := w.words[key]
	if !ok {
		words = splitWords(key)
		if g := gradeKey(words); g > w.grade {
			w.grade, w.graded = g, key
		}
		if len(w.words) < maxKeys {
			w.words[key] = words
		}
	}
	return words
}

// maxKeys bounds the number of argument names whose words are cached.
const maxKeys = 256

func (w *argumentWalk) effectReason() string {
	return "its argument " + w.key + " says " + w.worst.verb
}

func (w *argumentWalk) raiseEffect(key string, kind core.EffectKind, verb string) {
	j := textJudgement{kind: kind, verb: verb}
	if kind == core.EffectIrreversible {
		j.grade = gradeText(verb)
	}
	w.raiseJudgement(key, j)
}

func (w *argumentWalk) raiseJudgement(key string, j textJudgement) {
	if w.worst.verb == "" || j.kind > w.worst.kind || j.kind == w.worst.kind && j.grade > w.worst.grade {
		w.worst, w.key = j, key
	}
}

// maxNested bounds how many levels of JSON inside strings are decoded.
const maxNested = 3

// judgeDocument judges all values in a JSON document. key names the argument that contains it, and nested is the
// number of JSON strings around it.
func (w *argumentWalk) judgeDocument(text []byte, key string, nested int) {
	var s jsonscan.Scanner
	var keys []string // of the open containers, the innermost last
	for len(text) > 0 {
		kind, n, err := s.Next(text)
		if err != nil || s.InString() {
			w.raiseEffect(key, core.EffectIrreversible, "something that is not JSON")
			return
		}
		piece := text[:n]
		text = text[n:]
		switch kind {
		case jsonscan.Open:
			if s.NestingDepth() > 1 && piece[0] == '{' {
				w.judgeObject(key)
			}
			keys = append(keys, key)
		case jsonscan.Close:
			key, keys = keys[len(keys)-1], keys[:len(keys)-1]
		case jsonscan.Key:
			key = unquoteJSON(piece)
			w.splitKey(key)
			w.judgeMember(key, s.NestingDepth())
		case jsonscan.String:
			w.judgeText(key, unquoteJSON(piece), nested)
		case jsonscan.Literal:
			if string(piece) == "true" || string(piece) == "1" {
				w.judgeFlag(key)
			}
		}
	}
}

func unquoteJSON(piece []byte) string {
	if bytes.IndexByte(piece, '\\') < 0 {
		return string(piece[1 : len(piece)-1])
	}
	var text string
	if json.Unmarshal(piece, &text) != nil {
		return string(piece)
	}
	return text
}

// judgeMember judges a key of an object in the arguments. The key may be an operator, like $out in {"$out": "users"},
// or for a database also a command, like delete in {"command": {"delete": "users"}}.
func (w *argumentWalk) judgeMember(key string, depth int) {
	if key == "$out" || key == "$merge" {
		w.raiseEffect(key, core.EffectIrreversible, key)
	}
	if w.judge.database && depth > 1 && !strings.ContainsAny(key, "_- ") {
		w.judgeObject(key)
	}
}

// judgeObject judges a key whose value is an object, such as {"deleteOne": {…}}. The key may name an irreversible
// action.
func (w *argumentWalk) judgeObject(key string) {
	words := w.splitKey(key)
	if len(words) == 0 {
		return
	}
	if first := lookupWord(words[0]); first.bare && first.class == destroys {
		w.raiseEffect(key, core.EffectIrreversible, first.verb)
	}
}

// judgeFlag judges an argument whose value is true, such as {"permanent": true}, by its name.
func (w *argumentWalk) judgeFlag(key string) {
	for _, text := range w.splitKey(key) {
		word := lookupWord(text)
		if word.class == destroys && word.bare || lasting[text] || text == "force" && w.judge.effect.Kind > core.EffectRead {
			w.raiseEffect(key, core.EffectIrreversible, text)
		}
	}
}

// judgeText judges a string argument by its name and content.
func (w *argumentWalk) judgeText(key, value string, nested int) {
	if value == "" {
		return
	}
	words := w.splitKey(key)
	if nested < maxNested && (value[0] == '{' || value[0] == '[') && json.Valid([]byte(value)) {
		w.judgeDocument([]byte(value), key, nested+1)
		return
	}
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
	}
	switch {
	case value == "true" || value == "yes" || value == "1":
		w.judgeFlag(key)
	case (last == "method" || last == "verb") && isMethod(value),
		knownMethod(value) && (slices.Contains(words, "method") || slices.Contains(words, "http")):
		w.judgeMethod(key, value)
	case (commands[last] || last == "line" && slices.Contains(words, "command")) && !w.judge.choices[key]:
		w.raiseEffect(key, core.EffectIrreversible, "a command")
	case programs[last] && w.judge.effect.Kind > core.EffectRead && !w.judge.database && strings.ContainsAny(value, "(;={<> \n"):
		w.raiseEffect(key, core.EffectIrreversible, "a program")
	case options[last]:
		w.commandLine(key, value)
		w.judgeQuery(key, last, value)
	case actions[last] && len(value) <= 64:
		w.judgeAction(key, value)
	default:
		w.judgeQuery(key, last, value)
	}
}

// isMethod reports whether a value is an HTTP method, or a short text in capitals that could be one.
func isMethod(value string) bool {
	return len(value) <= 16 && value == strings.ToUpper(value) || knownMethod(value)
}

func knownMethod(value string) bool {
	return len(value) <= 16 && httpMethods[strings.ToLower(strings.TrimSpace(value))] != unknown
}

// judgeMethod judges an HTTP method. An unknown method counts as irreversible.
func (w *argumentWalk) judgeMethod(key, value string) {
	switch httpMethods[strings.ToLower(strings.TrimSpace(value))] {
	case reads:
	case writes:
		w.raiseEffect(key, core.EffectWrite, value)
	default:
		w.raiseJudgement(key, textJudgement{
			kind: core.EffectIrreversible, grade: max(core.GradeOther, gradeText(value)), verb: value,
		})
	}
}

// commandLine judges text that becomes part of a command line, as in {"args": ["push", "--force"]}.
func (w *argumentWalk) commandLine(key, value string) {
	if len(value) > maxQuery || strings.ContainsAny(value, ";|&`<>") || strings.Contains(value, "$(") {
		w.raiseEffect(key, core.EffectIrreversible, "a command line")
		return
	}
	for _, part := range strings.Fields(value) {
		option := strings.TrimLeft(part, "-")
		if option != part && (hard[option] || strings.HasPrefix(option, "force")) {
			w.raiseEffect(key, core.EffectIrreversible, part)
		}
		if j := judgeName(option); j.kind > core.EffectRead && (option == part || j.kind == core.EffectIrreversible) {
			w.raiseJudgement(key, j)
		}
	}
}

// judgeRequest judges a request in natural language for a tool that turns it into a query. A request that does not
// begin like a question counts as irreversible.
func (w *argumentWalk) judgeRequest(key, value string) {
	words := splitWords(value)
	if len(words) == 0 {
		return
	}
	if first := lookupWord(words[0]); !questions[words[0]] && first.class != reads {
		w.raiseEffect(key, core.EffectIrreversible, "something that does not begin like a question")
	}
	for i, text := range words {
		word := lookupWord(text)
		changes := word.class == destroys || word.class == writes || word.class > reads && i > 0 && connective[words[i-1]]
		if word.bare && changes {
			w.raiseEffect(key, core.EffectIrreversible, word.verb)
		}
	}
}

// judgeAction judges an argument that names an action, as in {"action": "delete"}.
func (w *argumentWalk) judgeAction(key, value string) {
	if j := judgeName(value); j.kind > core.EffectRead {
		w.raiseJudgement(key, j)
	}
}

// judgeQuery judges a string that may be a query. The argument last is the last word of the name under which the tool
// gets the string.
func (w *argumentWalk) judgeQuery(key, last, value string) {
	if j, ok := judgeGraphQL(value); ok {
		w.queries++
		w.raiseJudgement(key, j)
		if !sure[last] {
			return
		}
	}
	carries := carriers[last] || w.judge.queries[key]
	if w.judge.spoken && carries {
		w.judgeRequest(key, value)
	}
	if w.judge.database || sure[last] {
		if j, ok := judgeQuery(value); ok && carries {
			w.queries++
			w.raiseJudgement(key, j)
			return
		}
		if sure[last] {
			w.raiseJudgement(key, textJudgement{
				kind: core.EffectIrreversible, grade: gradeStatement(value), verb: "a statement that is not known",
			})
			return
		}
		w.judgeScript(key, value)
	}
	if carries || w.judge.database {
		if j := mentionsQuery(value); j.verb != "" {
			w.raiseJudgement(key, j)
		}
	}
	if strings.ContainsAny(value, " \n\t(") {
		w.others++
	}
}

// judgeScript judges a string that may be a script for a database shell, such as db.users.drop(), or a path of a
// database's HTTP interface, such as /users/_delete_by_query.
func (w *argumentWalk) judgeScript(key, value string) {
	for _, path := range []string{
		"_delete_by_query", "_update_by_query", "_bulk", "_reindex", "_forcemerge", "_close", "_restore", "_shrink",
		"_rollover", "_execute",
	} {
		if strings.Contains(value, path) {
			w.raiseEffect(key, core.EffectIrreversible, path)
		}
	}
	if len(value) > maxQuery || !strings.Contains(value, ".") && !strings.Contains(value, "$") {
		return
	}
	tokens := tokenizeQuery(dialects[len(dialects)-1], value)
	for i, t := range tokens {
		called := t.kind == tokenWord && i > 0 && tokens[i-1].text == "." && i+1 < len(tokens) && tokens[i+1].text == "("
		if j := judgeName(t.raw); called && j.kind > core.EffectRead {
			w.raiseJudgement(key, j)
		}
		if t.text == "]" && i+1 < len(tokens) && tokens[i+1].text == "(" {
			w.raiseEffect(key, core.EffectIrreversible, "a function whose name is computed") // db.users["drop"]()
		}
		if t.text == "$" && i+1 < len(tokens) && (tokens[i+1].text == "out" || tokens[i+1].text == "merge") {
			w.raiseEffect(key, core.EffectIrreversible, "$"+tokens[i+1].text)
		}
	}
}

var (
	// running contains verbs of tools that execute what their arguments contain, so that the arguments decide the
	// effect.
	running = wordSet("execute exec run query evaluate eval")
	// databases contains words that show that a tool or an argument is about a database.
	databases = wordSet(`sql postgres postgresql mysql mariadb sqlite duckdb bigquery snowflake redshift clickhouse mssql oracle database databases db cypher
		neo4j cassandra cql trino presto athena databricks spanner supabase neon planetscale cockroachdb cockroach hive spark mongodb mongo elasticsearch
		opensearch dynamodb couchbase redis sparql influxdb timescale d1 libsql turso graphql hasura warehouse lakehouse`)
	// sure contains the last words of argument names whose values are always queries.
	sure = wordSet("sql cypher statement statements stmt ddl dml tsql plsql sparql cql")
	// carriers contains the last words of argument names whose values may be queries.
	carriers = wordSet(
		"sql cypher statement statements stmt ddl dml tsql plsql sparql cql query queries q expression filter where script code input request payload batch",
	)
	// commands contains the last words of argument names whose values are run as commands.
	commands = wordSet("command commands cmd shell bash powershell commandline cmdline curl")
	// programs contains the last words of argument names whose values are run, if the tool does more than read.
	programs = wordSet("code script javascript js python typescript program snippet expression")
	// options contains the last words of argument names whose values are passed to a command.
	options = wordSet("args argv arguments flags subcommand subcommands")
	// hard contains command-line options with which commands destroy data.
	hard = wordSet("f rf fr hard purge prune delete D no-preserve-root mirror overwrite yes-i-really-mean-it")
	// questions contains the words with which questions begin.
	questions = wordSet(
		"what which who whose when where why how is are was were do does did has have can could give tell show top total number average all select with",
	)
	// actions contains the last words of argument names whose values name an action.
	actions = wordSet(
		"action actions operation operations op command cmd verb subcommand mutation function tool method mode act intent procedure",
	)
	// lasting contains words in option names that mark an action as impossible to undo.
	lasting = wordSet("permanent permanently irreversible hard")

	httpMethods = classesByWord(map[wordClass]string{
		reads:  "get head options trace connect propfind report search",
		writes: "put patch mkcol proppatch lock unlock copy", destroys: "post delete purge move",
	})
)
