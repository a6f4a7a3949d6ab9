package bindings

// flat is a type as one object that holds whatever the type's alternatives
// hold; nil if a value need not be an object, or if that is too much to tell.
func flat(n *node) *node {
	f := flattener{left: 1000}
	return f.object(n)
}

// flattener looks at a bounded number of types.
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

// joined is one object made of the parts of a union or intersection.
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

// combined is the type of a property that several parts have.
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
