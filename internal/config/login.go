package config

import (
	"net/url"
	"slices"
	"strings"
)

// OAuthClient configures how Retort logs in at one server. All fields may be empty.
type OAuthClient struct {
	ClientID       string   // ID of a manually registered client
	ClientSecret   string   // secret that belongs to ClientID
	ClientMetadata string   // https URL of a client ID metadata document
	Scopes         []string // scopes to request instead of those that the server names
	RedirectPort   int      // port of the loopback redirect URI
}

// fillFrom returns a copy of o whose empty fields are filled with those of other. It takes the client id and its
// secret from other only together.
func (o OAuthClient) fillFrom(other OAuthClient) OAuthClient {
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

func (o *OAuthClient) fieldReaders() []fieldReader {
	return []fieldReader{
		{"clientId", "Client id that was registered by hand at the authorization server.", readText(&o.ClientID)},
		{"clientSecret", "Secret that belongs to the client id.", secret(readText(&o.ClientSecret))},
		{"clientMetadata", "Address (https) of a client id metadata document.", readChecked(&o.ClientMetadata, "an https address with a path", isDocument)},
		{"scopes", "Scopes to ask for instead of those that the server names.", readScopes(&o.Scopes)},
		{"redirectPort", "Port of the loopback address to which the browser is redirected.", readInt(&o.RedirectPort, 1, 65535)},
	}
}

func (o *OAuthClient) reader() settingReader { return readObject(o.fieldReaders()...) }

// entryReader returns the reader for the login settings that clients write into their own server entries. It
// ignores fields that Retort does not know, and a login setting that is not an object, because these concern only
// the client.
func (o *OAuthClient) entryReader() settingReader {
	known := slices.Concat(o.fieldReaders(), []fieldReader{
		{"callbackPort", "", readInt(&o.RedirectPort, 1, 65535)},
		{"CLIENT_ID", "", readText(&o.ClientID)},
		{"CLIENT_SECRET", "", readText(&o.ClientSecret)},
	})
	entry := readOpenObject(known...)
	return entry.checkedBy(func(r *nodeReader, n *valueNode) {
		if n.kind == objectKind {
			entry.read(r, n)
		}
	})
}

// readScopes returns a reader for scopes, written as a list or as one string with spaces.
func readScopes(all *[]string) settingReader {
	list := readList(all, readText)
	read := func(r *nodeReader, n *valueNode) {
		if n.kind == listKind {
			list.read(r, n)
			return
		}
		var s string
		readText(&s).read(r, n)
		*all = strings.Fields(s)
	}
	return settingReader{read, anyOf(list.schema, textSchema), list.show}
}

func isDocument(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.Fragment == "" && strings.Trim(u.Path, "/") != ""
}
