package demo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"modernc.org/sqlite"
)

var (
	errSecretTable = fmt.Errorf("permission denied for table %s", secretTable)
	errOnlyRows    = errors.New("the database knows SELECT, INSERT, UPDATE and DELETE")
)

// statementGuard decides what a client's statement may do, and records which tables it uses. SQLite calls it while it
// compiles a statement.
type statementGuard struct {
	keys map[string]string // name of the column that identifies a row, by table

	trusted bool // the statement comes from the server itself
	write   bool // the statement may change rows
	named   []string
	written string
	refused error // why the statement was refused, or nil
}

func (g *statementGuard) reset(write bool) {
	g.write, g.named, g.written, g.refused = write, nil, "", nil
}

func (g *statementGuard) authorize(action sqlite.AuthorizerActionCode, arg1, arg2, _, _ string) sqlite.AuthorizerReturnCode {
	if g.trusted {
		return sqlite.AuthorizerOK
	}
	if err := g.check(action, arg1, arg2); err != nil {
		if g.refused == nil {
			g.refused = err
		}
		return sqlite.AuthorizerDeny
	}
	return sqlite.AuthorizerOK
}

func (g *statementGuard) check(action sqlite.AuthorizerActionCode, arg1, arg2 string) error {
	switch action {
	case sqlite.AuthSelect:
		return nil
	case sqlite.AuthRead:
		return g.checkTable(arg1, arg2)
	case sqlite.AuthInsert, sqlite.AuthDelete:
		return g.checkWrite(arg1)
	case sqlite.AuthUpdate:
		if arg2 != "" && arg2 == g.keys[arg1] {
			return fmt.Errorf("%s.%s is the key and cannot be changed", arg1, arg2)
		}
		return g.checkWrite(arg1)
	case sqlite.AuthFunction:
		return checkFunction(arg2)
	case sqlite.AuthRecursive:
		return errors.New("recursive queries are not supported")
	}
	return errOnlyRows
}

// checkTable decides whether a statement may read a column of a table. For a statement that reads no column, such as
// COUNT(*), column is "". An unknown table name without a column is allowed, because it is the name of a subquery.
func (g *statementGuard) checkTable(name, column string) error {
	if strings.EqualFold(name, secretTable) {
		return errSecretTable
	}
	for table := range g.keys {
		if strings.EqualFold(table, name) {
			g.named = append(g.named, table)
			return nil
		}
	}
	if column == "" {
		return nil
	}
	return missingTableError(name)
}

func (g *statementGuard) checkWrite(table string) error {
	switch {
	case table == secretTable:
		return errSecretTable
	case g.keys[table] == "":
		return errOnlyRows
	case !g.write:
		return errors.New("cannot execute a statement that writes in a read-only transaction; use execute")
	}
	g.named = append(g.named, table)
	g.written = table
	return nil
}

// allowedFunctions lists the SQL functions that clients may use. Their results do not depend on the day, and are
// never much larger than their arguments.
var allowedFunctions = strings.Fields(`abs avg coalesce count date datetime glob ifnull iif instr julianday length like lower ltrim
	max min nullif round rtrim strftime substr substring sum time total trim typeof upper`)

func checkFunction(name string) error {
	if slices.Contains(allowedFunctions, strings.ToLower(name)) {
		return nil
	}
	return fmt.Errorf("function %s does not exist; there are %s", strings.ToLower(name), strings.Join(allowedFunctions, ", "))
}

// checkStatement returns an error unless text is a single statement with one placeholder for each parameter. SQLite
// itself would also run a second statement.
func checkStatement(text string, params int) error {
	if strings.Contains(text, "\x00") {
		return errors.New("syntax error: a NUL character")
	}
	placeholders, content, ended := 0, false, false
	for text != "" {
		n, blank := sqlPiece(text)
		switch {
		case text[0] == ';':
			ended = content
		case blank:
		case ended:
			return errors.New("several statements are not supported")
		default:
			content = true
		}
		if text[0] == '?' {
			placeholders++
		}
		text = text[n:]
	}
	if !content {
		return errors.New("syntax error: there is no statement")
	}
	if placeholders != params {
		return fmt.Errorf("the statement has %d placeholders, but there are %d params", placeholders, params)
	}
	return nil
}

// sqlPiece returns the length of the first piece of an SQL text, which is a quoted text, a comment or a single
// character. It also reports whether that piece is a comment or space.
func sqlPiece(text string) (length int, blank bool) {
	switch c := text[0]; c {
	case '\'', '"', '`':
		return pieceUntil(text, 1, string(c)), false // a doubled quote is two pieces, side by side
	case '[':
		return pieceUntil(text, 1, "]"), false
	case ' ', '\t', '\n', '\f', '\r':
		return 1, true
	}
	if strings.HasPrefix(text, "--") {
		return pieceUntil(text, 2, "\n"), true
	}
	if strings.HasPrefix(text, "/*") {
		return pieceUntil(text, 2, "*/"), true
	}
	return 1, false
}

func pieceUntil(text string, start int, end string) int {
	i := strings.Index(text[start:], end)
	if i < 0 {
		return len(text)
	}
	return start + i + len(end)
}
