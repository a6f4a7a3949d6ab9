package demo

import (
	"fmt"
	"strings"
	"testing"
)

// pets is a small table with gaps.
func pets() *dataTable {
	return &dataTable{name: "pets", cols: []tableColumn{{name: "id", kind: integerKind}, {name: "name", kind: textKind}, {name: "kind", kind: textKind},
		{name: "weight", kind: decimalKind}, {name: "tame", kind: booleanKind}},
		rows: [][]any{{int64(1), "Ada", "cat", 4.5, true}, {int64(2), "Bo", "dog", 21.25, true}, {int64(3), "Cy", "cat", nil, false},
			{int64(4), "Di's", "fish", 0.1, nil}, {int64(9007199254740993), "Ed", "dog", 0.2, false}}}
}

func runSQL(sql string, params ...any) (string, error) {
	statement, err := parseSQL(sql, params)
	if err != nil {
		return "", err
	}
	t := pets()
	switch s := statement.(type) {
	case *selectStmt:
		out, err := s.runSelect(t)
		if err != nil {
			return "", err
		}
		return string(encodeJSON(out.rows)), nil
	case interface{ applyTo(*dataTable) (int, error) }:
		n, err := s.applyTo(t)
		var ids []any
		for _, row := range t.rows {
			ids = append(ids, row[0])
		}
		return fmt.Sprintf("%d %s", n, encodeJSON(ids)), err
	}
	return "", fmt.Errorf("a %T", statement)
}

func TestSQL(t *testing.T) {
	for _, test := range []struct {
		sql, want string
		params    []any
	}{
		{"SELECT * FROM pets WHERE id = 1", `[[1,"Ada","cat",4.5,true]]`, nil},
		{"select NAME from Pets where KIND = 'dog'", `[["Bo"],["Ed"]]`, nil},
		{"SELECT name FROM pets WHERE id = 9007199254740992", `null`, nil},
		{"SELECT name FROM pets WHERE id = 9007199254740993 ;", `[["Ed"]]`, nil},
		{"SELECT name FROM pets WHERE weight > 1 AND tame", "! expected a comparison", nil},
		{"SELECT name FROM pets WHERE weight > 1 AND tame = TRUE", `[["Ada"],["Bo"]]`, nil},
		{"SELECT name FROM pets WHERE NOT weight > 1", `[["Di's"],["Ed"]]`, nil},
		{"SELECT name FROM pets WHERE weight IS NULL OR tame IS NULL", `[["Cy"],["Di's"]]`, nil},
		{"SELECT name FROM pets WHERE weight IS NOT NULL AND weight BETWEEN 0.15 AND 5", `[["Ada"],["Ed"]]`, nil},
		{"SELECT name FROM pets WHERE weight NOT BETWEEN 0.15 AND 5", `[["Bo"],["Di's"]]`, nil},
		{"SELECT name FROM pets WHERE kind IN ('cat','fish') AND (id < 2 OR id >= 4)", `[["Ada"],["Di's"]]`, nil},
		{"SELECT name FROM pets WHERE kind NOT IN ('cat','fish')", `[["Bo"],["Ed"]]`, nil},
		{"SELECT name FROM pets WHERE name LIKE '%d%'", `[["Ada"],["Ed"]]`, nil},
		{"SELECT name FROM pets WHERE name ILIKE '_d%'", `[["Ada"],["Ed"]]`, nil},
		{"SELECT name FROM pets WHERE name NOT LIKE '%a%'", `[["Bo"],["Cy"],["Di's"],["Ed"]]`, nil},
		{"SELECT name FROM pets WHERE name = 'Di''s'", `[["Di's"]]`, nil},
		{"SELECT name FROM pets WHERE name = ? OR weight = ?", `[["Ada"],["Bo"]]`, []any{"Ada", 21.25}},
		{"SELECT name FROM pets WHERE kind <> 'cat' -- a remark\n AND id != 2", `[["Di's"],["Ed"]]`, nil},
		{"SELECT name FROM pets WHERE 'cat' = kind AND id > -1", `[["Ada"],["Cy"]]`, nil},
		{"SELECT name AS n FROM pets ORDER BY n DESC LIMIT 2", `[["Ed"],["Di's"]]`, nil},
		{"SELECT name FROM pets ORDER BY weight DESC, 1 LIMIT 2 OFFSET 1", `[["Ada"],["Ed"]]`, nil},
		{"SELECT name FROM pets OFFSET 4 LIMIT 5", `[["Ed"]]`, nil},
		{"SELECT DISTINCT kind FROM pets ORDER BY kind", `[["cat"],["dog"],["fish"]]`, nil},
		{"SELECT COUNT(*), COUNT(weight), COUNT(DISTINCT kind) FROM pets", `[[5,4,3]]`, nil},
		{"SELECT SUM(weight) AS s, AVG(weight) AS a, MIN(name) AS lo, MAX(id) AS hi FROM pets WHERE weight < 1", `[[0.3,0.15,"Di's",9007199254740993]]`, nil},
		{"SELECT SUM(id) FROM pets WHERE id < 4", `[[6]]`, nil},
		{"SELECT COUNT(*), SUM(weight) FROM pets WHERE id = 77", `[[0,null]]`, nil},
		{"SELECT kind, COUNT(*) FROM pets GROUP BY kind ORDER BY COUNT(*) DESC, kind", `[["cat",2],["dog",2],["fish",1]]`, nil},
		{"SELECT kind, COUNT(*) AS n FROM pets GROUP BY kind, tame ORDER BY n DESC LIMIT 1", `[["cat",1]]`, nil},
		{"SELECT \"name\" FROM \"pets\" WHERE \"id\" = 2", `[["Bo"]]`, nil},
		{"SELECT name FROM pets LIMIT 0", `null`, nil},
		{"INSERT INTO pets (id, name) VALUES (7, 'Fi'), (8, NULL)", `2 [1,2,3,4,9007199254740993,7,8]`, nil},
		{"INSERT INTO pets (id, weight) VALUES (?, ?)", `1 [1,2,3,4,9007199254740993,7]`, []any{int64(7), int64(3)}},
		{"UPDATE pets SET name = 'X', weight = NULL WHERE kind = 'cat'", `2 [1,2,3,4,9007199254740993]`, nil},
		{"DELETE FROM pets WHERE id > 2", `3 [1,2]`, nil},
		{"DELETE FROM pets", `5 null`, nil},

		{"", "! syntax error at end of input", nil},
		{"DROP TABLE pets", "! the database knows SELECT, INSERT, UPDATE and DELETE", nil},
		{"SELECT name FORM pets", "! syntax error at position 13, at \"FORM\": expected FROM", nil},
		{"SELECT name FROM pets JOIN x", "! joins, subqueries, HAVING", nil},
		{"SELECT name FROM pets; DELETE FROM pets", "! several statements are not supported", nil},
		{"SELECT colour FROM pets", "! column \"colour\" does not exist; pets has id, name, kind, weight, tame", nil},
		{"SELECT name FROM pets WHERE colour = 1", "! column \"colour\" does not exist", nil},
		{"SELECT name FROM pets ORDER BY colour", "! column \"colour\" does not exist", nil},
		{"SELECT name FROM pets ORDER BY 3", "! ORDER BY position 3", nil},
		{"SELECT name FROM pets ORDER BY 0", "! counts columns from 1", nil},
		{"SELECT name, COUNT(*) FROM pets", "! column \"name\" must appear in GROUP BY", nil},
		{"SELECT kind FROM pets GROUP BY colour", "! column \"colour\"", nil},
		{"SELECT kind FROM pets GROUP BY kind ORDER BY SUM(id)", "! ORDER BY SUM(id) must appear in the select list", nil},
		{"SELECT name, NAME FROM pets", "! two columns \"name\"", nil},
		{"SELECT SUM(name) FROM pets", "! has no numbers", nil},
		{"SELECT MEDIAN(id) FROM pets", "! function median does not exist", nil},
		{"SELECT SUM(*) FROM pets", "! expected the name of a column", nil},
		{"SELECT name FROM pets LIMIT -1", "! not negative", nil},
		{"SELECT name FROM pets LIMIT 1.5", "! whole number", nil},
		{"SELECT name FROM pets WHERE name = 'open", "! unterminated quote at position 36", nil},
		{"SELECT name FROM pets WHERE id = 1.2.3", "! is not a number", nil},
		{"SELECT name FROM pets WHERE id = 12ab", "! follows a number", nil},
		{"SELECT name FROM pets WHERE id = 99999999999999999999", "! out of range", nil},
		{"SELECT name FROM pets WHERE name LIKE 5", "! LIKE needs a text", nil},
		{"SELECT name FROM pets WHERE id = -'x'", "! minus before a text", nil},
		{"SELECT name FROM pets WHERE id = €", "! unexpected character '€'", nil},
		{"SELECT name FROM pets WHERE id = ?", "! more placeholders than the 0 params", nil},
		{"SELECT name FROM pets", "! 0 placeholders, but there are 1 params", []any{1}},
		{"SELECT name FROM pets WHERE " + strings.Repeat("(", 80) + "id = 1" + strings.Repeat(")", 80), "! nested deeper than 60", nil},
		{"SELECT name FROM pets WHERE " + strings.Repeat("NOT ", 80) + "id = 1", "! nested deeper than 60", nil},
		{"INSERT INTO pets (id) VALUES (1)", "! duplicate or missing key", nil},
		{"INSERT INTO pets (id) VALUES (7), (7)", "! duplicate or missing key", nil},
		{"INSERT INTO pets (name) VALUES ('x')", "! duplicate or missing key", nil},
		{"INSERT INTO pets (id, id) VALUES (7, 8)", "! named twice", nil},
		{"INSERT INTO pets (id, name) VALUES (7)", "! 2 columns but 1 values", nil},
		{"INSERT INTO pets (id, name) VALUES (7, 8)", "! name must be of type text, not 8", nil},
		{"UPDATE pets SET id = 5", "! is the key", nil},
		{"UPDATE pets SET weight = 'heavy'", "! weight must be of type decimal, not 'heavy'", nil},
		{"DELETE pets", "! expected FROM", nil},
	} {
		got, err := runSQL(test.sql, test.params...)
		if problem, wrong := strings.CutPrefix(test.want, "! "); wrong {
			if err == nil || !strings.Contains(err.Error(), problem) {
				t.Errorf("%s\n got error %v\nwant %s", test.sql, err, problem)
			}
		} else if err != nil || got != test.want {
			t.Errorf("%s\n got %s, %v\nwant %s", test.sql, got, err, test.want)
		}
	}
}

func TestLikeIsNotExponential(t *testing.T) {
	if likeMatch([]rune(strings.Repeat("a", 5000)), []rune(strings.Repeat("%a", 400)+"b")) {
		t.Error("matched")
	}
}

func FuzzSQL(f *testing.F) {
	for _, sql := range []string{
		"SELECT DISTINCT kind, COUNT(DISTINCT name) AS n FROM pets WHERE NOT (id <> 1 OR name ILIKE '%x_' AND weight BETWEEN 1 AND 2.5) GROUP BY kind ORDER BY 2 DESC, kind LIMIT 3 OFFSET 1",
		"INSERT INTO pets (id, name, tame) VALUES (-7, 'O''Hara', TRUE), (8, NULL, FALSE)",
		"UPDATE pets SET weight = ?, kind = 'x' WHERE id IN (1, 2) -- why",
		"DELETE FROM \"pets\" WHERE tame IS NOT NULL;",
		"SELECT ((((", "SELECT * FROM pets WHERE a=", "'", "\"", "--", "?", "\xff",
	} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		if len(sql) > 20_000 {
			t.Skip()
		}
		got, err := runSQL(sql)
		if again, err2 := runSQL(sql); got != again || (err == nil) != (err2 == nil) {
			t.Errorf("%q: %s, %v and then %s, %v", sql, got, err, again, err2)
		}
	})
}
