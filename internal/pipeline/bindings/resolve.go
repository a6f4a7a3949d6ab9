package bindings

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// document holds one schema and the targets of its references. JSON Schema allows a part of a document to be a
// resource of its own, named by $id; references inside are relative to it.
type document struct {
	root      *value
	siblings  bool // keywords next to $ref count, as since draft 2019-09
	resources map[string]*value
	anchors   map[anchor]*value
	bases     map[*value]*url.URL          // of the resources
	named     map[*value]*named            // types of their own by what they are made of
	sealed    func(property string) string // see core.Tool; nil of input
}

type anchor struct {
	resource *value
	name     string
}

// target holds a schema and the resource that it belongs to.
type target struct {
	schema   *value
	resource *value
}

func newDocument(root *value) *document {
	d := &document{root: root, siblings: true, named: map[*value]*named{}}
	for _, old := range []string{"draft-03", "draft-04", "draft-06", "draft-07"} {
		if strings.Contains(root.get("$schema").str(), old) {
			d.siblings = false
		}
	}
	return d
}

// names collects $id and $anchor when a reference first needs them.
func (d *document) names() {
	if d.resources != nil {
		return
	}
	d.resources, d.anchors = map[string]*value{}, map[anchor]*value{}
	d.bases = map[*value]*url.URL{d.root: {}}
	d.collect(d.root, d.root)
}

func (d *document) collect(v, resource *value) {
	if v.is(jsonObject) {
		resource = d.identify(v, resource)
	}
	for i, item := range v.items {
		if v.kind == jsonObject && isData(v.keys[i]) {
			continue
		}
		d.collect(item, resource)
	}
}

// isData reports whether a keyword's value is data and not a schema.
func isData(keyword string) bool {
	return keyword == "const" || keyword == "enum" || keyword == "default" || keyword == "examples"
}

func (d *document) identify(v, resource *value) *value {
	id := v.get("$id").str()
	if id == "" {
		id = v.get("id").str() // draft-04; a property named id is no string
	}
	if name, ok := strings.CutPrefix(id, "#"); ok && name != "" {
		d.anchors[anchor{resource, name}] = v
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
		if name := v.get(keyword).str(); name != "" {
			if _, taken := d.anchors[anchor{resource, name}]; !taken {
				d.anchors[anchor{resource, name}] = v
			}
		}
	}
	return resource
}

// resolve finds the target of ref within a resource. Nothing is ever fetched: references to other documents are not
// found.
func (d *document) resolve(ref string, resource *value) (target, bool) {
	if ref == "" || ref == "#" {
		return target{resource, resource}, true
	}
	place, fragment, _ := strings.Cut(ref, "#")
	if place != "" {
		d.names()
		relative, err := url.Parse(place)
		if err != nil {
			return target{}, false
		}
		found, ok := d.resources[d.base(resource).ResolveReference(relative).String()]
		if !ok {
			return target{}, false
		}
		resource = found
	}
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	switch {
	case fragment == "":
		return target{resource, resource}, true
	case fragment[0] == '/':
		return d.pointer(fragment[1:], resource)
	}
	d.names()
	found, ok := d.anchors[anchor{resource, fragment}]
	return target{found, resource}, ok
}

func (d *document) base(resource *value) *url.URL {
	if base, ok := d.bases[resource]; ok {
		return base
	}
	return &url.URL{}
}

// pointer follows a JSON pointer.
func (d *document) pointer(path string, resource *value) (target, bool) {
	v, holder := resource, resource
	for token := range strings.SplitSeq(path, "/") {
		switch v.kind {
		case jsonObject:
			v = v.get(unescape(token))
		case jsonArray:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v.items) {
				return target{}, false
			}
			v = v.items[i]
		default:
			return target{}, false
		}
		if v == nil {
			return target{}, false
		}
		if _, ok := d.bases[v]; ok {
			holder = v
		}
	}
	return target{v, holder}, v.kind == jsonObject || v.kind == jsonBool
}

// unescape decodes one token of a JSON pointer.
func unescape(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

// steps returns the tokens of a reference that can serve as a type name, last first.
func steps(ref string) []string {
	if plain, err := url.PathUnescape(ref); err == nil {
		ref = plain
	}
	ref = strings.TrimRight(ref, "#/")
	parts := strings.FieldsFunc(ref, func(r rune) bool { return r == '/' || r == '#' })
	for i, part := range parts {
		parts[i] = unescape(part)
	}
	slices.Reverse(parts)
	return parts
}
