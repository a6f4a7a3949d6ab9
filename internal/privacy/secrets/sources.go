package secrets

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
)

// What is secret of the configuration of a server. owner is the first word of labels.

// FromVariable returns the secrets in an environment variable or setting. These are the value itself or, if it is a
// URL, a connection string or JSON, the secret parts of it.
func FromVariable(owner, name, value string) []NamedSecret {
	v := strings.TrimSpace(value)
	label := owner + " " + name
	if found, ok := secretParts(label, v); ok {
		return found
	}
	if IsSecret(name, v) {
		return []NamedSecret{{label, v}}
	}
	return nil
}

// secretParts returns the secrets in a value that has several parts, such as a URL or a connection string. It returns
// false for other values.
func secretParts(label, v string) ([]NamedSecret, bool) {
	switch {
	case strings.Contains(v, "://") && !strings.ContainsAny(v, " \n\t"):
		return FromAddress(label, v), true
	case strings.HasPrefix(v, "{") || strings.HasPrefix(v, "["):
		var document any
		if json.Unmarshal([]byte(v), &document) == nil {
			return inJSON(label, "", document, nil), true
		}
	case strings.HasPrefix(v, "-----BEGIN"):
		return []NamedSecret{{label, v}}, true
	case strings.Contains(v, "=") && strings.ContainsAny(v, "; "):
		if found := connectionPairs(label, v); len(found) > 0 {
			return found, true
		}
	}
	return nil, false
}

// connectionPairs returns the secrets in a connection string such as Server=db;Password=….
func connectionPairs(label, v string) (found []NamedSecret) {
	for pair := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == ';' || r == ' ' }) {
		if name, value, ok := strings.Cut(pair, "="); ok && IsSecret(name, strings.Trim(value, `'"`)) {
			found = append(found, NamedSecret{label, strings.Trim(value, `'"`)})
		}
	}
	return found
}

func inJSON(label, key string, v any, found []NamedSecret) []NamedSecret {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			found = inJSON(label, k, inner, found)
		}
	case []any:
		for _, inner := range v {
			found = inJSON(label, key, inner, found)
		}
	case string:
		for _, s := range FromHeader("", key, v) {
			found = append(found, NamedSecret{label, s.Value})
		}
	}
	return found
}

// FromHeader returns the secrets in an HTTP header: the credentials without their scheme, and for Basic credentials
// also the decoded password.
func FromHeader(owner, name, value string) []NamedSecret {
	label := strings.TrimSpace(owner + " " + name)
	v := strings.TrimSpace(value)
	if strings.EqualFold(name, "cookie") {
		return cookieSecrets(label, v)
	}
	scheme, credentials, two := strings.Cut(v, " ")
	if !two || strings.ContainsAny(credentials, " ") || len(scheme) > 12 {
		return FromVariable(owner, name, v)
	}
	found := []NamedSecret{}
	if IsSecret("token", credentials) {
		found = append(found, NamedSecret{label, credentials})
	}
	if plain, err := base64.StdEncoding.DecodeString(credentials); err == nil && strings.EqualFold(scheme, "basic") {
		if _, password, ok := strings.Cut(string(plain), ":"); ok && IsSecret("password", password) {
			found = append(found, NamedSecret{label, password})
		}
	}
	return found
}

func cookieSecrets(label, v string) (found []NamedSecret) {
	for cookie := range strings.SplitSeq(v, ";") {
		if _, value, ok := strings.Cut(cookie, "="); ok && IsSecret("cookie", value) {
			found = append(found, NamedSecret{label, value})
		}
	}
	return found
}

// FromAddress returns the secrets in a URL: the password, parameters whose names suggest secrets, and parts that look
// random.
func FromAddress(label, address string) (found []NamedSecret) {
	add := func(name, value string) {
		if IsSecret(name, value) {
			found = append(found, NamedSecret{label, value})
		}
	}
	u, err := url.Parse(address)
	if err != nil {
		return looseCredentials(label, address)
	}
	if u.User != nil {
		password, has := u.User.Password()
		add("password", password)
		if name := u.User.Username(); !has {
			add("token", name)
		} else {
			add("user", name)
		}
	}
	for _, query := range []string{u.RawQuery, u.Fragment} {
		values, _ := url.ParseQuery(query)
		for name, all := range values {
			for _, value := range all {
				add(name, value)
			}
		}
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		add("path", segment)
	}
	return found
}

// looseCredentials returns the password in a text that resembles a URL but cannot be parsed as one.
func looseCredentials(label, address string) []NamedSecret {
	_, rest, _ := strings.Cut(address, "://")
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return nil
	}
	if _, password, ok := strings.Cut(rest[:at], ":"); ok && IsSecret("password", password) {
		return []NamedSecret{{label, password}}
	}
	return nil
}

// FromArguments returns the secrets in the arguments of a command. It recognises --token=…, --token …, NAME=…, URLs,
// HTTP headers, and arguments that look random.
func FromArguments(owner string, args []string) (found []NamedSecret) {
	option := ""
	for _, arg := range args {
		name, value, has := strings.Cut(arg, "=")
		header, credentials, isHeader := strings.Cut(arg, ": ")
		switch {
		case strings.Contains(arg, "://") && (!has || strings.Index(arg, "://") < len(name)):
			found = append(found, FromAddress(owner+" "+cmp.Or(option, "argument"), arg)...)
		case isHeader && !strings.ContainsAny(header, " ="):
			found = append(found, FromHeader(owner, header, credentials)...)
		case has && (strings.HasPrefix(arg, "-") || isName(name)):
			found = append(found, FromVariable(owner, strings.TrimLeft(name, "-"), value)...)
		case strings.HasPrefix(arg, "-"):
			option = strings.TrimLeft(arg, "-")
			continue
		default:
			found = append(found, FromVariable(owner, cmp.Or(option, "argument"), arg)...)
		}
		option = ""
	}
	return found
}

func isName(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && s[i] != '_' && s[i] != '-' {
			return false
		}
	}
	return s != ""
}
