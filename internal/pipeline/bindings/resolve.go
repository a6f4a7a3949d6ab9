package bindings

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// schemaDocument holds a schema document and the targets of its references. A part with its own $id is a separate
// resource: references inside it are relative to that $id.
type schemaDocument struct {
	root      *jsonValue
	siblings  bool // keywords next to $ref count, as since draft 2019-09
	resources map[string]*jsonValue
	anchors   map[schemaAnchor]*jsonValue
	bases     map[*jsonValue]*url.URL      // of the resources
	named     map[*jsonValue]*namedType    // types of their own by what they are made of
	sealed    func(property string) string // see core.Tool; nil of input
}

type schemaAnchor struct {
	resource *jsonValue
	name     string
}

// schemaTarget holds a schema and the resource that it belongs to.
type schemaTarget struct {
	schema   *jsonValue
	resource *jsonValue
}

func newDocument(root *jsonValue) *schemaDocument {
	d := &schemaDocument{root: root, siblings: true, named: map[*jsonValue]*namedType{}}
	for _, old := range []string{"draft-03", "draft-04", "draft-06", "draft-07"} {
		if strings.Contains(root.get("$schema").stringText(), old) {
			d.siblings = false
		}
	}
	return d
}

// collectNames finds all $id and $anchor of the document. Only the first call has an effect.
func (d *schemaDocument) collectNames() {
	if d.resources != nil {
		return
	}
	d.resources, d.anchors = map[string]*jsonValue{}, map[schemaAnchor]*jsonValue{}
	d.bases = map[*jsonValue]*url.URL{d.root: {}}
	d.collectFrom(d.root, d.root)
}

func (d *schemaDocument) collectFrom(v, resource *jsonValue) {
	if v.hasKind(jsonObject) {
		resource = d.identifyResource(v, resource)
	}
	for i, item := range v.items {
		if v.kind == jsonObject && isData(v.keys[i]) {
			continue
		}
		d.collectFrom(item, resource)
	}
}

// isData reports whether the value of a schema keyword is plain data, in which references have no meaning.
func isData(keyword string) bool {
	return keyword == "const" || keyword == "enum" || keyword == "default" || keyword == "examples"
}

func (d *schemaDocument) identifyResource(v, resource *jsonValue) *jsonValue {
	id := v.get("$id").stringText()
	if id == "" {
		id = v.get("id").stringText() // draft-04; a property named id is no string
	}
	if name, ok := strings.CutPrefix(id, "#"); ok && name != "" {
		d.anchors[schemaAnchor{resource, name}] = v
	} else if ref, err := url.Parse(id); err == nil && id != "" {
		base := d.bases[resource].ResolveReference(ref)
		base.Fragment = ""
		resource = v
		d.bases[v] = base
		if _, taken := d.resources[base.String()]; !taken {
			d.resources[base.String()] = v
		}
	}
	for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
		if name := v.get(keyword).stringText(); name != "" {
			if _, taken := d.anchors[schemaAnchor{resource, name}]; !taken {
				d.anchors[schemaAnchor{resource, name}] = v
			}
		}
	}
	return resource
}

// resolveReference finds the schema that ref refers to within a resource. It never fetches other documents, so
// references to them are not found.
func (d *schemaDocument) resolveReference(ref string, resource *jsonValue) (schemaTarget, bool) {
	if ref == "" || ref == "#" {
		return schemaTarget{resource, resource}, true
	}
	place, fragment, _ := strings.Cut(ref, "#")
	if place != "" {
		d.collectNames()
		relative, err := url.Parse(place)
		if err != nil {
			return schemaTarget{}, false
		}
		found, ok := d.resources[d.baseURL(resource).ResolveReference(relative).String()]
		if !ok {
			return schemaTarget{}, false
		}
		resource = found
	}
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	switch {
	case fragment == "":
		return schemaTarget{resource, resource}, true
	case fragment[0] == '/':
		return d.followPointer(fragment[1:], resource)
	}
	d.collectNames()
	found, ok := d.anchors[schemaAnchor{resource, fragment}]
	return schemaTarget{found, resource}, ok
}

func (d *schemaDocument) baseURL(resource *jsonValue) *url.URL {
	if base, ok := d.bases[resource]; ok {
		return base
	}
	return &url.URL{}
}

// followPointer returns the schema at a JSON pointer within a resource. It returns false if none is found.
func (d *schemaDocument) followPointer(path string, resource *jsonValue) (schemaTarget, bool) {
	v, holder := resource, resource
	for token := range strings.SplitSeq(path, "/") {
		switch v.kind {
		case jsonObject:
			v = v.get(unescapeToken(token))
		case jsonArray:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v.items) {
				return schemaTarget{}, false
			}
			v = v.items[i]
		default:
			return schemaTarget{}, false
		}
		if v == nil {
			return schemaTarget{}, false
		}
		if _, ok := d.bases[v]; ok {
			holder = v
		}
	}
	return schemaTarget{v, holder}, v.kind == jsonObject || v.kind == jsonBool
}

// unescapeToken decodes one token of a JSON pointer.
func unescapeToken(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

// referenceNames splits a reference, such as #/$defs/Issue, into parts from which a type name can be made. The last
// part comes first.
func referenceNames(ref string) []string {
	if plain, err := url.PathUnescape(ref); err == nil {
		ref = plain
	}
	ref = strings.TrimRight(ref, "#/")
	parts := strings.FieldsFunc(ref, func(r rune) bool { return r == '/' || r == '#' })
	for i, part := range parts {
		parts[i] = unescapeToken(part)
	}
	slices.Reverse(parts)
	return parts
}
