package packaging

import (
	"fmt"
	"regexp"
	"strings"
)

// Accounts names the accounts under which releases are published. packaging/accounts.env describes each.
type Accounts struct {
	Owner, NPMScope, NPMPackage, Image, HomebrewTap, Maintainer, Builder string
}

// accountRule says in which field a variable of the accounts file belongs, and which values are valid.
type accountRule struct {
	variable string
	valid    *regexp.Regexp
	field    func(*Accounts) *string
}

// accountRules lists the variables of the accounts file. Their patterns accept no character that has a meaning in
// JSON, Ruby, YAML or a shell.
var accountRules = []accountRule{
	{"RELEASE_OWNER", regexp.MustCompile(`^[A-Za-z0-9](-?[A-Za-z0-9])*$`),
		func(a *Accounts) *string { return &a.Owner }},
	{"RELEASE_NPM_SCOPE", regexp.MustCompile(`^@[a-z0-9][a-z0-9._-]*$`),
		func(a *Accounts) *string { return &a.NPMScope }},
	{"RELEASE_NPM_PACKAGE", regexp.MustCompile(`^(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*$`),
		func(a *Accounts) *string { return &a.NPMPackage }},
	{"RELEASE_IMAGE", regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*(:[0-9]+)?(/[a-z0-9]+([._-][a-z0-9]+)*)+$`),
		func(a *Accounts) *string { return &a.Image }},
	{"RELEASE_HOMEBREW_TAP", regexp.MustCompile(`^[A-Za-z0-9](-?[A-Za-z0-9])*/[A-Za-z0-9](-?[A-Za-z0-9])*$`),
		func(a *Accounts) *string { return &a.HomebrewTap }},
	{"RELEASE_MAINTAINER", regexp.MustCompile(`^[A-Za-z0-9._+-]+@[A-Za-z0-9.-]+$`),
		func(a *Accounts) *string { return &a.Maintainer }},
	{"RELEASE_BUILDER", regexp.MustCompile(`^https://[A-Za-z0-9./_-]+$`),
		func(a *Accounts) *string { return &a.Builder }},
}

// ParseAccounts reads the text of packaging/accounts.env. It returns an error if a variable is missing, unknown, given
// twice or invalid.
func ParseAccounts(text []byte) (Accounts, error) {
	var a Accounts
	for number, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := a.set(line); err != nil {
			return Accounts{}, fmt.Errorf("accounts, line %d: %w", number+1, err)
		}
	}
	for _, rule := range accountRules {
		if *rule.field(&a) == "" {
			return Accounts{}, fmt.Errorf("accounts: %s is missing", rule.variable)
		}
	}
	return a, nil
}

func (a *Accounts) set(line string) error {
	name, value, _ := strings.Cut(line, "=")
	for _, rule := range accountRules {
		switch field := rule.field(a); {
		case rule.variable != name:
		case *field != "":
			return fmt.Errorf("%s is given twice", name)
		case !rule.valid.MatchString(value):
			return fmt.Errorf("%q is not a valid %s", value, name)
		default:
			*field = value
			return nil
		}
	}
	return fmt.Errorf("%q is not a variable of this file", name)
}

var leftPlaceholder = regexp.MustCompile(`@[A-Z_]+@`)

// fill replaces the placeholders of a template, such as @OWNER@, with the names of accounts and with values, which maps
// further placeholders to their values. No registry accepts a placeholder as a name, so a template cannot be published
// by accident. fill returns an error if a placeholder is left.
func (a Accounts) fill(template []byte, values map[string]string) ([]byte, error) {
	pairs := []string{"@OWNER@", a.Owner, "@NPM_SCOPE@", a.NPMScope, "@NPM_PACKAGE@", a.NPMPackage, "@IMAGE@", a.Image}
	for name, value := range values {
		pairs = append(pairs, name, value)
	}
	text := strings.NewReplacer(pairs...).Replace(string(template))
	if left := leftPlaceholder.FindString(text); left != "" {
		return nil, fmt.Errorf("the placeholder %s has no value", left)
	}
	return []byte(text), nil
}

// repository returns the address of the source repository.
func (a Accounts) repository() string { return "https://github.com/" + a.Owner + "/retort" }

// downloadURL returns the address of a published file of a release.
func (a Accounts) downloadURL(version, name string) string {
	return a.repository() + "/releases/download/v" + version + "/" + name
}
