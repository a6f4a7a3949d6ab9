package effect

import (
	"encoding/json"
	"strings"
	"testing"

	"retort/internal/core"
)

const (
	read, write, irreversible = core.EffectRead, core.EffectWrite, core.EffectIrreversible
)

// callTools holds the tools whose calls the tests judge. The test cases refer to them by these keys.
var callTools = map[string]core.Tool{
	"query":          {Server: "postgres", Name: "query", Description: "Run a read-only SQL query"},
	"query_database": {Name: "query_database", Description: "Queries the database"},
	"mysql_query":    {Name: "mysql_query", Description: "Run SQL, including INSERT, UPDATE and DELETE"},
	"execute_sql":    {Name: "execute_sql", Description: "Executes raw SQL in the Postgres database."},
	"read_cypher":    {Name: "read_neo4j_cypher", Description: "Execute a Cypher query"},
	"search":         {Name: "search", Description: "Searches the documentation"},
	"http":           {Name: "fetch", Description: "Fetches a URL"},
	"graphql":        {Name: "query_graphql", Description: "Sends a query"},
	"manage":         {Name: "get_records", Description: "Works on records"},
	"create":         {Name: "create_issue", Description: "Creates an issue"},
	"find":           {Name: "find", Description: "Find documents in MongoDB"},
	"terminal":       {Name: "terminal", Description: "A terminal"},
	"elastic":        {Name: "es_search", Description: "Elasticsearch search"},
}

var callCases = []struct {
	tool, args string
	want       core.EffectKind
}{
	{"query", `{"sql": "SELECT * FROM users"}`, read},
	{"query", `{"sql": "select count(*), lower(name) from users where name in ('delete', 'drop table') limit 10"}`, read},
	{"query", `{"sql": "SELECT CASE WHEN a > 1 THEN 'x' WHEN b THEN -1 ELSE price END FROM t"}`, read},
	{"query", `{"sql": "(SELECT 1) UNION (SELECT 2);"}`, read},
	{"query", `{"sql": "SELECT 1; /drop/it"}`, irreversible},
	{"query", `{"sql": "INSERT INTO users VALUES (1)"}`, write},
	{"query", `{"sql": "update users set a = 1 where id = 2"}`, write},
	{"query", `{"sql": "update users set a = 1"}`, irreversible},
	{"query", `{"sql": "DELETE FROM users"}`, irreversible},
	{"query", `{"sql": "  /* note */ -- more\n ;; DrOp TABLE users"}`, irreversible},
	{"query", `{"sql": "SELECT 1; DROP TABLE users"}`, irreversible},
	{"query", `{"sql": "WITH x AS (DELETE FROM users RETURNING *) SELECT * FROM x"}`, irreversible},
	{"query", `{"sql": "WITH t(a, b) AS (SELECT 1, 2) SELECT * FROM t"}`, read},
	{"query", `{"sql": "EXPLAIN ANALYZE DELETE FROM users"}`, irreversible},
	{"query", `{"sql": "SELECT * INTO copy FROM users"}`, write},
	{"query", `{"sql": "SELECT /*!50000 1; DROP TABLE users */"}`, irreversible},
	{"query", `{"sql": "SELECT 1 # it's\n; DROP TABLE x -- '"}`, irreversible},
	{"query", `{"sql": "SELECT 'a\\'; DROP TABLE x; --'"}`, irreversible},
	{"query", `{"sql": "SELECT $$ ' $$; DELETE FROM x; -- '"}`, irreversible},
	{"query", `{"sql": "SELECT pg_terminate_backend(1)"}`, irreversible},
	{"query", `{"sql": "SELECT public.delete_user(5)"}`, irreversible},
	{"query", `{"sql": "CALL cleanup()"}`, irreversible},
	{"query", `{"sql": "DO $$ BEGIN DELETE FROM x; END $$"}`, irreversible},
	{"query", `{"sql": "COPY users TO PROGRAM 'rm -rf /'"}`, irreversible},
	{"query", `{"sql": "SELECT 1 EXEC xp_cmdshell 'dir'"}`, irreversible},
	{"query", `{"sql": "PRAGMA table_info(users)"}`, read},
	{"query", `{"sql": "PRAGMA writable_schema = 1"}`, write},
	{"query", `{"sql": "SHOW CREATE TABLE users"}`, read},
	{"query", `{"sql": "frobnicate users"}`, irreversible},
	{"query", `{"queries": ["SELECT 1", "TRUNCATE users"]}`, irreversible},
	{"query", `{"batch": [{"sql": "DROP TABLE users"}]}`, irreversible},
	{"query", `{"sql": "SELECT 1", "sql": "DROP TABLE users"}`, irreversible},
	{"query", `{"body": "{\"query\": \"DELETE FROM users\"}"}`, irreversible},
	{"query", `{"s\u0071l": "DROP\u0020TABLE users"}`, irreversible},
	{"query", "{\"sql\": \"DR\u200bOP TABLE users\"}", irreversible},
	{"query_database", `{"query": "UPDATE users SET admin = true WHERE id = 1"}`, write},
	{"query_database", `{"query": "how many users are there"}`, read},
	{"query_database", `{"text": "DROP TABLE users"}`, irreversible},
	{"mysql_query", `{"query": "DELETE FROM users"}`, irreversible},
	{"execute_sql", `{"query": "SELECT id, name FROM users ORDER BY id LIMIT 10"}`, read},
	{"execute_sql", `{"query": "SELECT do_things()"}`, irreversible},
	{"execute_sql", `{"query": "SELECT 1", "then": "drop everything now"}`, irreversible},
	{"execute_sql", `{"query": "INSERT INTO a VALUES (1)"}`, write},
	{"execute_sql", `{}`, irreversible},
	{"read_cypher", `{"query": "MATCH (n:Person) RETURN n.name LIMIT 5"}`, read},
	{"read_cypher", `{"query": "MATCH (n) DETACH DELETE n"}`, irreversible},
	{"read_cypher", `{"query": "MATCH (n) SET n.a = 1 RETURN n"}`, write},
	{"read_cypher", `{"query": "MATCH (n) // '\n DETACH DELETE n // '"}`, irreversible},
	{"search", `{"query": "how to delete rows"}`, read},
	{"search", `{"query": "DELETE FROM users"}`, irreversible},
	{"search", `{"query": "update on the plan"}`, read},
	{"http", `{"url": "https://example.com", "method": "GET"}`, read},
	{"http", `{"url": "https://example.com", "method": "delete"}`, irreversible},
	{"http", `{"url": "https://example.com", "method": "POST"}`, irreversible},
	{"http", `{"url": "https://example.com", "requestMethod": "PUT"}`, write},
	{"graphql", `{"query": "query { deleteMe { id } }"}`, read},
	{"graphql", `{"query": "mutation { addStar(id: 1) { id } }"}`, write},
	{"graphql", `{"query": "mutation X($id: ID!) @a { issueCancel(id: $id) { ok } }"}`, irreversible},
	{"graphql", `{"query": "# note\nmutation { deleteIssue(id: 1) { ok } }"}`, irreversible},
	{"graphql", `{"query": "fragment f on X { a } mutation{x:removeUser{id}}"}`, irreversible},
	{"manage", `{"action": "list"}`, read},
	{"manage", `{"action": "delete_all"}`, irreversible},
	{"manage", `{"operation": "UPDATE"}`, write},
	{"manage", `{"id": 1, "permanent": true}`, irreversible},
	{"manage", `{"options": {"delete": true}}`, irreversible},
	{"manage", `{"options": {"delete": false}}`, read},
	{"manage", `{"requests": [{"deleteContent": {"at": 1}}]}`, irreversible},
	{"create", `{"title": "DROP TABLE users", "body": "DELETE FROM users fails"}`, write},
	{"find", `{"filter": {"age": {"$gt": 3}}}`, read},
	{"find", `{"pipeline": [{"$match": {}}, {"$out": "users"}]}`, irreversible},
	{"find", `{"command": {"delete": "users", "deletes": [{"q": {}}]}}`, irreversible},
	{"find", `{"query": "db.users.deleteMany({})"}`, irreversible},
	{"find", `{"query": "db.users.find({})"}`, read},
	{"terminal", `{"command": "ls"}`, irreversible},
	{"elastic", `{"path": "/users/_delete_by_query"}`, irreversible},
	{"elastic", `{"body": {"query": {"match_all": {}}}}`, read},
}

func TestCall(t *testing.T) {
	for _, c := range callCases {
		tool := callTools[c.tool]
		e := NewJudge(&tool, false).CallEffect(json.RawMessage(c.args))
		if e.Kind != c.want {
			t.Errorf("%s(%s) is judged %s (%s), want %s", tool.Name, c.args, e.Kind, e.Reason, c.want)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	for _, c := range []struct{ name, tool, args string }{
		{"small", "create", `{"title": "A title", "body": "Some text about things", "labels": ["a", "b"], "priority": 3}`},
		{"query", "query", `{"sql": "SELECT id, name FROM users WHERE created > '2026-01-01' ORDER BY id LIMIT 10"}`},
		{"rows", "create", `{"rows": [` + strings.Repeat(`{"name": "Some name", "note": "a longer text with words", "n": 1},`, 1000) + `{}]}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			tool := callTools[c.tool]
			judge := NewJudge(&tool, false)
			b.SetBytes(int64(len(c.args)))
			for b.Loop() {
				judge.CallEffect(json.RawMessage(c.args))
			}
		})
	}
}
