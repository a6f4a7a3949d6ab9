package jsonschema

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// schemaPlace holds a subschema of the document and the schema resource that contains it.
type schemaPlace struct {
	doc  any
	home *resourceOrigin
}

// resourceOrigin describes the root of a schema resource, which is a part of the document with its own identifier.
// References inside the resource are relative to that identifier.
type resourceOrigin struct {
	base     *url.URL
	draft    int
	resource *schemaResource
}

// documentURL is the base URL of a document that has no identifier.
const documentURL = "schema:///input"

// draftOf returns the draft of JSON Schema that $schema names. It ignores the scheme and the fragment of the URL.
func draftOf(doc map[string]any, otherwise int) int {
	s, _ := doc["$schema"].(string)
	_, s, _ = strings.Cut(strings.TrimSuffix(s, "#"), "://")
	switch s {
	case "json-schema.org/draft-04/schema":
		return 4
	case "json-schema.org/draft-06/schema":
		return 6
	case "json-schema.org/draft-07/schema":
		return 7
	case "json-schema.org/draft/2019-09/schema":
		return 2019
	case "json-schema.org/draft/2020-12/schema", "json-schema.org/schema":
		return 2020
	}
	return otherwise
}

// firstDraft returns the first draft that defines a keyword. Schemas of earlier drafts ignore the keyword.
func firstDraft(keyword string) int {
	switch keyword {
	case "const", "contains", "propertyNames":
		return 6
	case "if", "then", "else":
		return 7
	case "dependentRequired", "dependentSchemas", "minContains", "maxContains", "unevaluatedProperties",
		"unevaluatedItems", "$anchor", "$recursiveRef", "$recursiveAnchor":
		return 2019
	case "prefixItems", "$dynamicRef", "$dynamicAnchor":
		return 2020
	}
	return 4
}

// keywordShape says where the subschemas are in a keyword's value. Several of the shapes may be possible for one
// keyword.
type keywordShape uint8

const (
	single keywordShape = 1 << iota // the value itself is a subschema
	listed                          // the value is an array of subschemas
	named                           // the value is an object whose members are subschemas
)

func shapeOf(keyword string) keywordShape {
	switch keyword {
	case "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "not", "propertyNames",
		"then", "unevaluatedItems", "unevaluatedProperties":
		return single
	case "items":
		return single | listed
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return listed
	case "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties":
		return named
	}
	return 0
}

// locateResources finds the resources and anchors in doc. It searches only where the specification allows a schema.
// For example, an $id inside an enum does not count.
func (c *schemaCompiler) locateResources(doc any, home *resourceOrigin, depth int) error {
	obj, ok := doc.(map[string]any)
	if !ok {
		return nil
	}
	if c.located++; depth > maxNesting || c.located > maxNodes {
		return errTooMany
	}
	home, err := c.identifyResource(obj, home)
	if err != nil {
		return err
	}
	for _, sub := range listSubschemas(obj) {
		if err := c.locateResources(sub, home, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// listSubschemas returns the subschemas of the schema obj in a fixed order. The choice between two subschemas that
// define the same anchor is therefore always the same.
func listSubschemas(obj map[string]any) (subs []any) {
	var keywords []string
	for k := range obj {
		if shapeOf(k) != 0 {
			keywords = append(keywords, k)
		}
	}
	slices.Sort(keywords)
	for _, k := range keywords {
		switch v := obj[k].(type) {
		case []any:
			if shapeOf(k)&listed != 0 {
				subs = append(subs, v...)
			}
		case map[string]any:
			if shapeOf(k)&single != 0 {
				subs = append(subs, v)
				continue
			}
			for _, name := range sortedKeys(v) {
				subs = append(subs, v[name])
			}
		}
	}
	return subs
}

// identifyResource begins a new resource if obj has an identifier, and registers the anchors that obj defines.
func (c *schemaCompiler) identifyResource(obj map[string]any, home *resourceOrigin) (*resourceOrigin, error) {
	draft := draftOf(obj, home.draft)
	keyword := "$id"
	if draft == 4 {
		keyword = "id"
	}
	id, _ := obj[keyword].(string)
	if _, ref := obj["$ref"].(string); ref && draft < 2019 {
		id = ""
	}
	name, fragment, _ := strings.Cut(id, "#")
	if name != "" {
		u, err := home.base.Parse(name)
		if err != nil {
			return nil, fmt.Errorf("the identifier %s: %w", quoteValue(id), err)
		}
		home = c.beginResource(obj, u, draft)
	}
	here := schemaPlace{obj, home}
	if fragment != "" && home.draft < 2019 && !strings.HasPrefix(fragment, "/") {
		home.resource.anchors[fragment] = here
	}
	if a, ok := home.keywordValue(obj, "$anchor").(string); ok {
		home.resource.anchors[a] = here
	}
	if a, ok := home.keywordValue(obj, "$dynamicAnchor").(string); ok {
		home.resource.anchors[a] = here
		home.resource.dynamic[a] = nil
	}
	return home, nil
}

func (c *schemaCompiler) beginResource(doc any, base *url.URL, draft int) *resourceOrigin {
	o := &resourceOrigin{base: base, draft: draft, resource: &schemaResource{anchors: map[string]schemaPlace{}, dynamic: map[string]*schemaNode{}}}
	o.resource.place = schemaPlace{doc, o}
	if key := base.String(); c.origins[key] == nil {
		c.origins[key] = o
	}
	if obj, ok := doc.(map[string]any); ok {
		o.resource.recursive, _ = o.keywordValue(obj, "$recursiveAnchor").(bool)
		c.begins[mapIdentity(obj)] = o
	}
	return o
}

// keywordValue returns the value of a keyword, or nil if the draft does not define the keyword.
func (o *resourceOrigin) keywordValue(obj map[string]any, keyword string) any {
	if o.draft < firstDraft(keyword) {
		return nil
	}
	return obj[keyword]
}

// mapIdentity returns a map key for an object of the document. Two objects have different keys even if their contents
// are equal.
func mapIdentity(obj map[string]any) uintptr { return reflect.ValueOf(obj).Pointer() }

// resolveReference returns the target of a reference. If the reference uses an anchor, it also returns the anchor's
// name.
func (c *schemaCompiler) resolveReference(ref string, home *resourceOrigin) (to schemaPlace, anchor string, err error) {
	u, err := home.base.Parse(ref)
	if err != nil {
		return schemaPlace{}, "", fmt.Errorf("the reference %s: %w", quoteValue(ref), err)
	}
	fragment := u.Fragment
	u.Fragment, u.RawFragment = "", ""
	o := c.origins[u.String()]
	if o == nil {
		return schemaPlace{}, "", fmt.Errorf("%s is not loaded", u)
	}
	switch {
	case fragment == "":
		return o.resource.place, "", nil
	case strings.HasPrefix(fragment, "/"):
		to, err = c.followPointer(o.resource.place, fragment)
	default:
		anchor = fragment
		if to = o.resource.anchors[anchor]; to.home == nil {
			err = errors.New("there is no such anchor")
		}
	}
	if err != nil {
		err = fmt.Errorf("the reference %s: %w", quoteValue(ref), err)
	}
	return to, anchor, err
}

// followPointer follows a JSON pointer from a place in the document.
func (c *schemaCompiler) followPointer(from schemaPlace, pointer string) (schemaPlace, error) {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = unescape.Replace(token)
		var ok bool
		switch doc := from.doc.(type) {
		case map[string]any:
			from.doc, ok = doc[token]
		case []any:
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(doc) {
				from.doc, ok = doc[i], true
			}
		}
		if !ok {
			return schemaPlace{}, fmt.Errorf("there is no %s", quoteValue(token))
		}
		if obj, is := from.doc.(map[string]any); is && c.begins[mapIdentity(obj)] != nil {
			from.home = c.begins[mapIdentity(obj)]
		}
	}
	return from, nil
}
