package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// openPets opens a database with a small table that has NULL values, and a table with 20,000 rows.
func openPets(t testing.TB) *sqlDatabase {
	large := &dataTable{name: "large", cols: []tableColumn{{name: "n", kind: integerKind}}}
	for i := range 20_000 {
		large.rows = append(large.rows, []any{int64(i)})
	}
	d := newSQLDatabase([]*dataTable{large, {
		name: "pets", cols: []tableColumn{
			{name: "id", kind: integerKind}, {name: "name", kind: textKind}, {name: "kind", kind: textKind, options: []string{"cat", "dog", "fish"}},
			{name: "weight", kind: decimalKind}, {name: "tame", kind: booleanKind}, {name: "born", kind: dateKind}, {name: "seen", kind: datetimeKind},
		},
		rows: [][]any{
			{int64(1), "Ada", "cat", 4.5, true, "2024-02-29", "2026-11-02T09:00:00Z"}, {int64(2), "Bo", "dog", 21.25, true, nil, nil},
			{int64(3), "Cy", "cat", nil, false, nil, nil}, {int64(4), "Di's", "fish", 0.1, nil, nil, nil},
			{int64(9007199254740993), "Ed", "dog", 0.2, false, nil, nil},
		},
	}})
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// runSQL runs a statement and returns its rows as JSON. For a statement that writes, it returns the number of changed
// rows and the ids that are in the table pets afterwards.
func runSQL(ctx context.Context, d *sqlDatabase, statement string, params ...string) (string, error) {
	in := statementInput{SQL: statement}
	for _, p := range params {
		in.Params = append(in.Params, json.RawMessage(p))
	}
	verb, _, _ := strings.Cut(statement, " ")
	if verb != "INSERT" && verb != "UPDATE" && verb != "DELETE" && verb != "REPLACE" {
		out, err := d.query(ctx, in, 100)
		if err != nil {
			return "", err
		}
		return string(encodeJSON(out.rows)), nil
	}
	_, n, err := d.execute(ctx, in)
	if err != nil {
		return "", err
	}
	out, err := d.query(ctx, statementInput{SQL: "SELECT id FROM pets ORDER BY id"}, 100)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %s", n, encodeJSON(out.rows)), nil
}

func TestSQL(t *testing.T) {
	for _, test := range []struct {
		sql, want string
		params    []string
	}{
		{"SELECT * FROM pets WHERE id = 1", `[[1,"Ada","cat",4.5,true,"2024-02-29","2026-11-02T09:00:00Z"]]`, nil},
		{"select NAME from Pets where KIND = 'dog'", `[["Bo"],["Ed"]]`, nil},
		{"SELECT name FROM pets WHERE id = 9007199254740992", `null`, nil},
		{"SELECT name FROM pets WHERE id = 9007199254740993 ;", `[["Ed"]]`, nil},
		{"SELECT name FROM pets WHERE id = ?", `[["Ed"]]`, []string{"9007199254740993"}},
		{"SELECT name FROM pets WHERE weight > 1 AND tame = TRUE", `[["Ada"],["Bo"]]`, nil},
		{"SELECT name FROM pets WHERE tame = ?", `[["Cy"],["Ed"]]`, []string{"false"}},
		{"SELECT name FROM pets WHERE NOT weight > 1", `[["Di's"],["Ed"]]`, nil},
		{"SELECT name FROM pets WHERE weight IS NULL OR tame IS NULL", `[["Cy"],["Di's"]]`, nil},
		{"SELECT name FROM pets WHERE weight NOT BETWEEN 0.15 AND 5", `[["Bo"],["Di's"]]`, nil},
		{"SELECT name FROM pets WHERE kind IN ('cat','fish') AND (id < 2 OR id >= 4)", `[["Ada"],["Di's"]]`, nil},
		{"SELECT name FROM pets WHERE name LIKE '_d%'", `[["Ada"],["Ed"]]`, nil},
		{"SELECT name FROM pets WHERE name = 'Di''s' -- a; remark", `[["Di's"]]`, nil},
		{"SELECT name FROM pets WHERE /* ; ? */ name = ? OR weight = ?;;", `[["Ada"],["Bo"]]`, []string{`"Ada"`, "21.25"}},
		{"SELECT name AS n FROM pets ORDER BY n DESC LIMIT 2", `[["Ed"],["Di's"]]`, nil},
		{"SELECT name FROM pets ORDER BY weight DESC, 1 LIMIT 2 OFFSET 1", `[["Ada"],["Ed"]]`, nil},
		{"SELECT COUNT(*), COUNT(weight), COUNT(DISTINCT kind) FROM pets", `[[5,4,3]]`, nil},
		{"SELECT SUM(weight) AS s, AVG(weight) AS a, MIN(name) AS lo, MAX(id) AS hi FROM pets WHERE weight < 1", `[[0.3,0.15,"Di's",9007199254740993]]`, nil},
		{"SELECT COUNT(*), SUM(weight) FROM pets WHERE id = 77", `[[0,null]]`, nil},
		{"SELECT kind, COUNT(*) FROM pets GROUP BY kind ORDER BY COUNT(*) DESC, kind", `[["cat",2],["dog",2],["fish",1]]`, nil},
		{"SELECT \"name\" FROM \"pets\" WHERE [id] = 2", `[["Bo"]]`, nil},
		{"SELECT 1 AS one", `[[1]]`, nil},
		{"SELECT COUNT(*) FROM PETS", `[[5]]`, nil},
		{"WITH cats AS (SELECT * FROM pets WHERE kind = 'cat') SELECT COUNT(*) FROM cats", `[[2]]`, nil},
		{"INSERT INTO pets (id, name) VALUES (7, 'Fi'), (8, NULL)", `2 [[1],[2],[3],[4],[7],[8],[9007199254740993]]`, nil},
		{"INSERT INTO pets (id, weight) VALUES (?, ?)", `1 [[1],[2],[3],[4],[7],[9007199254740993]]`, []string{"7", "3"}},
		{"UPDATE pets SET name = 'X', weight = NULL WHERE kind = 'cat'", `2 [[1],[2],[3],[4],[9007199254740993]]`, nil},
		{"DELETE FROM pets WHERE id > 2", `3 [[1],[2]]`, nil},

		{"-- nothing", "! there is no statement", nil},
		{"SELECT name FORM pets", "! near \"pets\": syntax error", nil},
		{"SELECT name FROM pets WHERE name ILIKE 'a'", "! near \"ILIKE\": syntax error; LIKE ignores case", nil},
		{"SELECT colour FROM pets", "! no such column: colour; describe_table", nil},
		{"SELECT \"colour\" FROM pets", "! no such column: \"colour\"", nil},
		{"SELECT name FROM cats", "! relation \"cats\" does not exist", nil},
		{"SELECT name FROM pets ORDER BY 3", "! ORDER BY term out of range", nil},
		{"SELECT name, NAME FROM pets", "! two columns \"name\"", nil},
		{"SELECT MEDIAN(id) FROM pets", "! no such function: MEDIAN", nil},
		{"SELECT name FROM pets WHERE name = 'open", "! unrecognized token", nil},
		{"SELECT name FROM pets WHERE id = ?", "! 1 placeholders, but there are 0 params", nil},
		{"SELECT name FROM pets WHERE name = '?'", "! 0 placeholders, but there are 1 params", []string{"1"}},
		{"SELECT name FROM pets WHERE id = ?", "! out of range", []string{"99999999999999999999"}},
		{"SELECT 9e999 AS big", "! big is out of range", nil},
		{"SELECT x'00' AS bytes", "! bytes is a blob", nil},
		{"INSERT INTO pets (id) VALUES (1)", "! UNIQUE constraint failed: pets.id", nil},
		{"INSERT INTO pets (name) VALUES ('x')", "! NOT NULL constraint failed: pets.id", nil},
		{"INSERT INTO pets (id, name) VALUES (7)", "! 1 values for 2 columns", nil},
		{"UPDATE pets SET id = 5", "! pets.id is the key and cannot be changed", nil},
		{"UPDATE pets SET weight = 'heavy'", "! weight must be of type decimal", nil},
		{"UPDATE pets SET weight = 1e16", "! weight must be of type decimal", nil},
		{"UPDATE pets SET id = 'x'", "! is the key", nil},
		{"UPDATE pets SET tame = 2", "! tame must be of type boolean", nil},
		{"UPDATE pets SET kind = 'cow'", "! kind must be one of cat, dog, fish", nil},
		{"UPDATE pets SET born = '2023-02-29'", "! born must be of type date", nil},
		{"UPDATE pets SET seen = '2026-11-02 09:00'", "! seen must be of type datetime in UTC", nil},
	} {
		got, err := runSQL(t.Context(), openPets(t), test.sql, test.params...)
		if problem, wrong := strings.CutPrefix(test.want, "! "); wrong {
			if err == nil || !strings.Contains(err.Error(), problem) {
				t.Errorf("%s\n got error %v\nwant %s", test.sql, err, problem)
			}
		} else if err != nil || got != test.want {
			t.Errorf("%s\n got %s, %v\nwant %s", test.sql, got, err, test.want)
		}
	}
}

// TestSQLRefusesHostileStatements checks that hostile statements are refused and change nothing. They try to access
// files, to use unbounded time or memory, or to change something other than rows.
func TestSQLRefusesHostileStatements(t *testing.T) {
	d, file := openPets(t), t.TempDir()+"/stolen.db"
	const only = "the database knows SELECT, INSERT, UPDATE and DELETE"
	for sql, problem := range map[string]string{
		"ATTACH '" + file + "' AS f":  only,
		"VACUUM INTO '" + file + "'":  only,
		"PRAGMA writable_schema = ON": only,
		"DROP TABLE pets":             only,
		"CREATE TEMP TABLE t (x)":     only,
		"CREATE TRIGGER t AFTER DELETE ON pets BEGIN DELETE FROM pets; END": "several statements",
		"BEGIN":                                                            only,
		"SELECT load_extension('/tmp/x.so')":                               "function load_extension does not exist",
		"SELECT randomblob(1000000000)":                                    "function randomblob does not exist",
		"SELECT printf('%.1000000000c', 'x')":                              "function printf does not exist",
		"SELECT * FROM sqlite_master":                                      "does not exist",
		"SELECT * FROM pragma_database_list":                               "does not exist",
		"SELECT * FROM sqlite_dbpage":                                      "does not exist",
		"SELECT * FROM salaries":                                           "permission denied for table salaries",
		"SELECT (SELECT salary FROM salaries)":                             "permission denied for table salaries",
		"SELECT COUNT(*) FROM main.Salaries":                               "permission denied for table salaries",
		"SELECT COUNT(*) FROM salaries":                                    "permission denied for table salaries",
		"INSERT INTO salaries VALUES ('x', 1)":                             "permission denied for table salaries",
		"SELECT 1; DELETE FROM pets":                                       "several statements",
		"SELECT ';' -- '\n; DELETE FROM pets":                              "several statements",
		"SELECT 1 /* ' */; DELETE FROM pets -- '":                          "several statements",
		"SELECT 1;\x00 DELETE FROM pets":                                   "NUL",
		"WITH x AS (SELECT 1) DELETE FROM pets":                            "read-only transaction",
		"INSERT INTO large SELECT a.n * 20000 + b.n FROM large a, large b": "several tables",
		"SELECT COUNT(*) FROM large a, large b, large c, large d":          "several tables",
		"SELECT COUNT(*) FROM large a WHERE EXISTS (SELECT 1 FROM large b WHERE b.n > a.n + 1e9)": "several tables",
		"SELECT name FROM pets UNION ALL SELECT name FROM pets":                                   "several tables",
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c":  "recursive",
		"SELECT '" + strings.Repeat("x", maxValue) + "'":                                          "may have 4096 bytes",
		"SELECT " + strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200):                     "",
		"SELECT " + strings.Repeat("NOT ", 200) + "1":                                             "Expression tree is too large",
	} {
		if _, err := runSQL(t.Context(), d, sql); problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%.200s\n got error %v\nwant %s", sql, err, problem)
		}
	}
	if got, err := runSQL(t.Context(), d, "SELECT COUNT(*) FROM pets"); got != "[[5]]" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestTableHoldsBoundedRows(t *testing.T) {
	d := openPets(t)
	double := "INSERT INTO large SELECT n + (SELECT 20000) FROM large"
	if _, err := runSQL(t.Context(), d, double); err != nil {
		t.Fatal(err)
	}
	if _, err := runSQL(t.Context(), d, "INSERT INTO large SELECT n + 40000 FROM large"); err == nil || !strings.Contains(err.Error(), "large is full") {
		t.Error(err)
	}
	if got, err := runSQL(t.Context(), d, "SELECT COUNT(*) FROM large"); got != "[[40000]]" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestStatementIsCancelled checks that a statement ends when its time is over or its call is cancelled, and that
// later statements still work.
func TestStatementIsCancelled(t *testing.T) {
	d := openPets(t)
	long := "SELECT COUNT(*) FROM large WHERE " + strings.TrimSuffix(strings.Repeat("n LIKE '%1%2%3%4%5%6' OR ", 80), " OR ")
	d.timeout = time.Nanosecond
	if _, err := runSQL(t.Context(), d, long); err == nil || !strings.Contains(err.Error(), "took longer than 1ns") {
		t.Error(err)
	}
	d.timeout = statementTimeout
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runSQL(gone, d, long); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got, err := runSQL(t.Context(), d, "SELECT COUNT(*) FROM large"); got != "[[20000]]" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestSQLiteStartsWithTheFirstStatement checks that SQLite is not started before a client runs a statement, and that
// only the tables named in it are filled.
func TestSQLiteStartsWithTheFirstStatement(t *testing.T) {
	b := &serverBase{}
	tools := buildDatabase(b)
	d := &databaseServer{serverBase: b, w: newWorld()}
	d.makeTables()
	d.sql = newSQLDatabase(d.tables)
	if _, err := d.listTables(t.Context(), struct{}{}); err != nil || d.sql.pool != nil {
		t.Error(err, d.sql.pool)
	}
	if _, err := d.runQuery(t.Context(), statementInput{SQL: "SELECT * FROM products"}); err != nil || d.sql.pool == nil {
		t.Error(err, d.sql.pool)
	}
	if d.sql.filled["orders"] || !d.sql.filled["products"] {
		t.Error(d.sql.filled)
	}
	if err := errors.Join(d.sql.close(), b.close()); err != nil || len(tools) != 6 {
		t.Error(err, len(tools))
	}
}

func FuzzSQL(f *testing.F) {
	for _, sql := range []string{
		"SELECT DISTINCT kind, COUNT(DISTINCT name) AS n FROM pets WHERE NOT (id <> 1 OR name LIKE '%x_' AND weight BETWEEN 1 AND 2.5) GROUP BY kind ORDER BY 2 DESC, kind LIMIT 3 OFFSET 1",
		"INSERT INTO pets (id, name, tame) VALUES (-7, 'O''Hara', TRUE), (8, NULL, FALSE)",
		"UPDATE pets SET weight = 1, kind = 'x' WHERE id IN (1, 2) -- why",
		"DELETE FROM \"pets\" WHERE tame IS NOT NULL;", "ATTACH 'x' AS y", "SELECT 1; DROP TABLE pets",
		"SELECT ((((", "SELECT * FROM pets WHERE a=", "'", "\"", "--", "?", "\xff", "/*", "[", "`;",
	} {
		f.Add(sql)
	}
	d := openPets(f)
	f.Fuzz(func(t *testing.T, sql string) {
		if len(sql) > 20_000 {
			t.Skip()
		}
		_, _ = runSQL(t.Context(), d, sql)
		if got, err := d.query(t.Context(), statementInput{SQL: "SELECT COUNT(*) AS n FROM large"}, 1); err != nil {
			t.Errorf("%q: %v, %v", sql, got, err)
		}
	})
}
