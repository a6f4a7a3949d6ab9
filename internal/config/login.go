package config

import (
	"net/url"
	"slices"
	"strings"
)

// Login configures how Retort logs in at one server. All fields may be empty.
type Login struct {
	ClientID       string   // registered by hand
	ClientSecret   string   // that came with it
	ClientMetadata string   // https address of a client id metadata document
	Scopes         []string // asked for instead of what the server names
	RedirectPort   int      // of the loopback redirect
}

// with returns o with its empty fields filled from other. A client id and its secret are taken together.
func (o Login) with(other Login) Login {
	if o.ClientID == "" {
		o.ClientID, o.ClientSecret = other.ClientID, other.ClientSecret
	}
	if o.ClientMetadata == "" {
		o.ClientMetadata = other.ClientMetadata
	}
	if len(o.Scopes) == 0 {
		o.Scopes = other.Scopes
	}
	if o.RedirectPort == 0 {
		o.RedirectPort = other.RedirectPort
	}
	return o
}

func (o *Login) fields() []field {
	return []field{
		{"clientId", text(&o.ClientID)},
		{"clientSecret", text(&o.ClientSecret)},
		{"clientMetadata", checked(&o.ClientMetadata, "an https address with a path", isDocument)},
		{"scopes", scopes(&o.Scopes)},
		{"redirectPort", integer(&o.RedirectPort, 1, 65535)},
	}
}

func (o *Login) read() into { return object(o.fields()...) }

// readEntry reads the login settings that clients write into their own entries. It ignores all other fields, and
// values that are not objects: they concern only the client.
func (o *Login) readEntry() into {
	known := slices.Concat(o.fields(), []field{
		{"callbackPort", integer(&o.RedirectPort, 1, 65535)},
		{"CLIENT_ID", text(&o.ClientID)},
		{"CLIENT_SECRET", text(&o.ClientSecret)},
	})
	return func(r *reader, n *node) {
		if n.kind == objectKind {
			openObject(known...)(r, n)
		}
	}
}

// scopes reads a list, or a string with scopes separated by spaces.
func scopes(all *[]string) into {
	return func(r *reader, n *node) {
		if n.kind == listKind {
			list(all, text)(r, n)
			return
		}
		var s string
		text(&s)(r, n)
		*all = strings.Fields(s)
	}
}

func isDocument(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.Fragment == "" && strings.Trim(u.Path, "/") != ""
}
