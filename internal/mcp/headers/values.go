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

// SetHeaders adds a header for each bound argument that has a value.
func SetHeaders(header http.Header, bound []HeaderBinding, args json.RawMessage) {
	for _, b := range bound {
		if value, ok := valueOf(argumentAt(args, b.Path)); ok {
			header.Set(ParamPrefix+b.Header, value)
		}
	}
}

// CheckHeaders compares the headers of a call with its arguments. Each bound argument must be repeated exactly once
// with its value. CheckHeaders ignores headers that no binding names.
func CheckHeaders(header http.Header, bound []HeaderBinding, args json.RawMessage) error {
	for _, b := range bound {
		name := ParamPrefix + b.Header
		given := header.Values(name)
		arg := argumentAt(args, b.Path)
		want, has := valueOf(arg)
		switch {
		case len(given) > 1:
			return fmt.Errorf("there is more than one header %s", name)
		case len(given) == 0 && has:
			return fmt.Errorf("the header %s, which must repeat the argument %q, is missing", name, strings.Join(b.Path, "."))
		case len(given) == 0:
			continue
		case !has:
			return fmt.Errorf("there is a header %s, but not the argument %q that it must repeat", name, strings.Join(b.Path, "."))
		}
		said, err := DecodeValue(given[0])
		if err != nil {
			return fmt.Errorf("the header %s %w", name, err)
		}
		if !equalValues(said, want, arg) {
			return fmt.Errorf("the header %s differs from the argument %q", name, strings.Join(b.Path, "."))
		}
	}
	return nil
}

// equalValues reports whether the value of a header equals an argument. want is the header value that SetHeaders
// would write. Numbers are compared by value, because they have several spellings.
func equalValues(said, want string, arg json.RawMessage) bool {
	if len(arg) > 0 && (arg[0] == '-' || arg[0] >= '0' && arg[0] <= '9') {
		n, err := strconv.ParseFloat(said, 64)
		exact, wrong := strconv.ParseFloat(want, 64)
		return err == nil && wrong == nil && n == exact && isDecimal(said)
	}
	plain, err := DecodeValue(want)
	return err == nil && said == plain
}

// isDecimal reports whether s is a decimal number. It excludes what strconv.ParseFloat also accepts: hexadecimal
// digits, underscores, and names such as Inf.
func isDecimal(s string) bool { return strings.Trim(s, "0123456789+-.eE") == "" }

func argumentAt(args json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(args, &object) != nil {
			return nil
		}
		args = object[name]
	}
	return args
}

// valueOf returns the header value for a string, a boolean or an integer that a float64 represents exactly. It
// returns false for all other values.
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
		return EncodeValue(v), true
	}
	return "", false
}

const encodedPrefix, encodedSuffix = "=?base64?", "?="

// EncodeValue returns a string as a header value. It encodes a string in base64 if the string contains anything but
// printable ASCII, begins or ends with white space, or looks encoded.
func EncodeValue(s string) string {
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

// DecodeValue returns the string in a header value. It accepts base64 even for a string that EncodeValue would not
// have encoded. It returns an error for any other value that EncodeValue cannot return.
func DecodeValue(header string) (string, error) {
	if isEncoded(header) {
		text, err := base64.StdEncoding.Strict().DecodeString(header[len(encodedPrefix) : len(header)-len(encodedSuffix)])
		if err != nil || !utf8.Valid(text) || strings.ContainsAny(header, "\r\n") {
			return "", errors.New("is not the base64 of a UTF-8 string")
		}
		return string(text), nil
	}
	for i := 0; i < len(header); i++ {
		if header[i] != '\t' && (header[i] < ' ' || header[i] > '~') {
			return "", errors.New("contains characters that must be encoded")
		}
	}
	return header, nil
}
