package config

import (
	"net/url"
	"slices"
	"strings"
)

// Login describes how Retort logs in at one server. All may be empty.
type Login struct {
	ClientID       string   // registered by hand
	ClientSecret   string   // that came with it
	ClientMetadata string   // https address of a client id metadata document
	Scopes         []string // asked for instead of what the server names
	RedirectPort   int      // of the loopback redirect
}

// with is o, and where it says nothing what other says. A client goes with its secret.
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

// readEntry reads what clients write into their own entries. What they write besides
// concerns only them, also where it is no object.
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

// scopes reads a list, or a text with blanks between.
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
