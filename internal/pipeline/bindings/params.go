package bindings

// positionalParam holds a property of a tool's input and its name as a positional parameter.
type positionalParam struct {
	objectField
	ident string // its name as a parameter
}

const maxPositional = 8

// positionalParams returns the parameters of a call with positional arguments. It returns nil if a tool cannot be
// called in this way: because it has too many parameters, or because the first argument may itself be an object,
// which would be taken as the whole input.
func positionalParams(input *typeNode) []positionalParam {
	if input.shape != shapeObject || len(input.fields) == 0 || len(input.fields) > maxPositional || mayBeObject(input.fields[0].node) {
		return nil
	}
	var idents nameNumbering
	params := make([]positionalParam, len(input.fields))
	for i, f := range input.fields {
		ident := f.name
		if !isIdentifier(ident) {
			ident = toCamelCase(ident)
		}
		ident = safeIdentifier(ident, "value", scriptReserved)
		params[i] = positionalParam{f, idents.nextName(ident)}
	}
	return params
}

// mayBeObject reports whether a value of type n can be an object other than an array.
func mayBeObject(n *typeNode) bool {
	switch n.shape {
	case shapeAny, shapeObject, shapeRef, shapeBoth:
		return true
	case shapeUnion:
		for _, item := range n.items {
			if mayBeObject(item) {
				return true
			}
		}
	}
	return false
}

// optionalInput reports whether a call can omit its input.
func optionalInput(n *typeNode) bool {
	switch n.shape {
	case shapeObject:
		for _, f := range n.fields {
			if f.required {
				return false
			}
		}
		return true
	case shapeUnion:
		for _, item := range n.items {
			if optionalInput(item) {
				return true
			}
		}
		return false
	case shapeBoth:
		for _, item := range n.items {
			if !optionalInput(item) {
				return false
			}
		}
		return true
	case shapeRef:
		return n.to.node.shape == shapeObject && optionalInput(n.to.node)
	}
	return n.shape == shapeAny
}
