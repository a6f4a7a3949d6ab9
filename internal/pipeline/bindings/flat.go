package bindings

// flattenObjects merges the alternatives of a type into one object type with the members of all of them. It returns
// nil if a value may be something other than an object, or if the type is too large.
func flattenObjects(n *typeNode) *typeNode {
	f := objectFlattener{left: 1000}
	return f.flattenObject(n)
}

// objectFlattener merges types into one object type. Its field left is the number of types that it may still visit,
// so that large types cannot take too long.
type objectFlattener struct {
	left int
}

func (f *objectFlattener) flattenObject(n *typeNode) *typeNode {
	f.left--
	switch {
	case f.left < 0:
		return nil
	case n.shape == shapeObject:
		return n
	case n.shape == shapeRef:
		return f.flattenObject(n.to.node)
	case n.shape == shapeUnion, n.shape == shapeBoth:
		return f.joinParts(n)
	}
	return nil
}

// joinParts merges the types that a union or intersection consists of into one object type. It returns nil if one of
// them is not an object type.
func (f *objectFlattener) joinParts(n *typeNode) *typeNode {
	out := &typeNode{shape: shapeObject, doc: n.doc}
	at, required := map[string]int{}, map[string]int{}
	for _, item := range n.items {
		object := f.flattenObject(item)
		if object == nil {
			return nil
		}
		for _, p := range object.fields {
			if p.required {
				required[p.name]++
			}
			if i, ok := at[p.name]; ok {
				out.fields[i].node = combineProperty(out.fields[i].node, p.node, n.shape)
				continue
			}
			at[p.name] = len(out.fields)
			out.fields = append(out.fields, p)
		}
		if out.index == nil {
			out.index = object.index
		}
	}
	for i, p := range out.fields {
		out.fields[i].required = required[p.name] == len(n.items) || n.shape == shapeBoth && required[p.name] > 0
	}
	return out
}

// combineProperty returns the type of a property that occurs in two object types which are being merged. a and b are
// the property's types in them. If the two object types are members of a union, the result is the union of a and b,
// otherwise their intersection.
func combineProperty(a, b *typeNode, s typeShape) *typeNode {
	n := intersectionOf
	if s == shapeUnion {
		n = unionOf
	}
	c := *n(a, b)
	if c.doc.isEmpty() {
		c.doc = a.doc
	}
	return &c
}
