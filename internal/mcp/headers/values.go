package headers

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Set puts the arguments that are bound into the headers of a call.
func Set(header http.Header, bound []Binding, args json.RawMessage) {
	for _, b := range bound {
		if value, ok := valueOf(argument(args, b.Path)); ok {
			header.Set(ParamPrefix+b.Header, value)
		}
	}
}

// Check holds the headers of a call against its arguments: each argument that is bound is
// repeated once, and nothing else is said of it. Headers that no binding names mean nothing.
func Check(header http.Header, bound []Binding, args json.RawMessage) error {
	for _, b := range bound {
		name := ParamPrefix + b.Header
		given := header.Values(name)
		arg := argument(args, b.Path)
		want, has := valueOf(arg)
		switch {
		case len(given) > 1:
			return fmt.Errorf("there is more than one header %s", name)
		case len(given) == 0 && has:
			return fmt.Errorf("the header %s is missing, which repeats the argument %q", name, strings.Join(b.Path, "."))
		case len(given) == 0:
			continue
		case !has:
			return fmt.Errorf("there is a header %s, but no argument %q that it could repeat", name, strings.Join(b.Path, "."))
		}
		said, err := Decode(given[0])
		if err != nil {
			return fmt.Errorf("the header %s %w", name, err)
		}
		if !equal(said, want, arg) {
			return fmt.Errorf("the header %s is not what the argument %q is", name, strings.Join(b.Path, "."))
		}
	}
	return nil
}

// equal reports whether a header says what an argument is; want is how it would be sent. Numbers
// have several spellings.
func equal(said, want string, arg json.RawMessage) bool {
	if len(arg) > 0 && (arg[0] == '-' || arg[0] >= '0' && arg[0] <= '9') {
		n, err := strconv.ParseFloat(said, 64)
		exact, wrong := strconv.ParseFloat(want, 64)
		return err == nil && wrong == nil && n == exact && isDecimal(said)
	}
	plain, err := Decode(want)
	return err == nil && said == plain
}

// isDecimal keeps out what else the reader of numbers knows: hexadecimal, underscores, words.
func isDecimal(s string) bool { return strings.Trim(s, "0123456789+-.eE") == "" }

func argument(args json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(args, &object) != nil {
			return nil
		}
		args = object[name]
	}
	return args
}

// valueOf returns a string, a boolean or a safe integer as a header carries it.
func valueOf(raw json.RawMessage) (string, bool) {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return "", false
	}
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		const safe = 1<<53 - 1
		return strconv.FormatInt(int64(v), 10), v == math.Trunc(v) && math.Abs(v) <= safe
	case string:
		return Encode(v), true
	}
	return "", false
}

const encodedPrefix, encodedSuffix = "=?base64?", "?="

// Encode returns a text as a header carries it: what is not plain ASCII, or looks encoded, is encoded.
func Encode(s string) string {
	plain := s == strings.Trim(s, " \t") && !isEncoded(s)
	for i := 0; i < len(s); i++ {
		plain = plain && s[i] >= ' ' && s[i] <= '~'
	}
	if plain {
		return s
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(s)) + encodedSuffix
}

func isEncoded(s string) bool {
	return len(s) >= len(encodedPrefix)+len(encodedSuffix) && strings.HasPrefix(s, encodedPrefix) && strings.HasSuffix(s, encodedSuffix)
}

// Decode returns the text that a header carries. One that can't have come out of Encode, but for being encoded
// without need, is an error.
func Decode(header string) (string, error) {
	if isEncoded(header) {
		text, err := base64.StdEncoding.Strict().DecodeString(header[len(encodedPrefix) : len(header)-len(encodedSuffix)])
		if err != nil || !utf8.Valid(text) || strings.ContainsAny(header, "\r\n") {
			return "", errors.New("is not the base64 of a text")
		}
		return string(text), nil
	}
	for i := 0; i < len(header); i++ {
		if header[i] != '\t' && (header[i] < ' ' || header[i] > '~') {
			return "", errors.New("has characters that must be encoded")
		}
	}
	return header, nil
}
