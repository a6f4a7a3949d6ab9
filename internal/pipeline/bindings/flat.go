package bindings

// flat merges a type's alternatives into one object type that accepts all of their members. It returns nil if a value
// need not be an object, or if the type is too large.
func flat(n *node) *node {
	f := flattener{left: 1000}
	return f.object(n)
}

// flattener flattens types and stops after a bounded number of them.
type flattener struct {
	left int
}

func (f *flattener) object(n *node) *node {
	f.left--
	switch {
	case f.left < 0:
		return nil
	case n.shape == shapeObject:
		return n
	case n.shape == shapeRef:
		return f.object(n.to.node)
	case n.shape == shapeUnion, n.shape == shapeBoth:
		return f.joined(n)
	}
	return nil
}

// joined returns one object made of the parts of a union or intersection.
func (f *flattener) joined(n *node) *node {
	out := &node{shape: shapeObject, doc: n.doc}
	at, required := map[string]int{}, map[string]int{}
	for _, item := range n.items {
		object := f.object(item)
		if object == nil {
			return nil
		}
		for _, p := range object.fields {
			if p.required {
				required[p.name]++
			}
			if i, ok := at[p.name]; ok {
				out.fields[i].node = combined(out.fields[i].node, p.node, n.shape)
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

// combined returns the type of a property that occurs in several parts.
func combined(a, b *node, s shape) *node {
	n := both
	if s == shapeUnion {
		n = union
	}
	c := *n(a, b)
	if c.doc.empty() {
		c.doc = a.doc
	}
	return &c
}
