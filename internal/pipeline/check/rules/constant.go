package rules

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// constantText returns the string to which an expression always evaluates, even if it is assembled from parts. It
// returns false if the value is not constant.
func (p *analyzedTree) constantText(i int32) (string, bool) {
	if i < 0 {
		return "", false
	}
	if p.hasKind(i, String) {
		return p.Nodes[i].Text, true
	}
	m := &p.texts[i]
	if m.state == memoUnasked {
		m.state = memoBusy
		p.deep++
		defer func() { p.deep-- }()
		s, ok := p.foldConstant(i)
		if p.budget -= len(s); ok && p.budget >= 0 {
			m.value, m.state = s, memoKnown
		} else {
			m.state = memoNone
		}
	}
	return m.value, m.state == memoKnown
}

func (p *analyzedTree) foldConstant(i int32) (string, bool) {
	n := &p.Nodes[i]
	switch n.Kind {
	case Name:
		if n.Bind > 0 && len(p.defs[n.Bind]) == 1 && p.deep < maxDeep {
			if d := p.defs[n.Bind][0]; d.path == "" && len(d.keys) == 0 {
				return p.constantText(d.node)
			}
		}
	case Binary:
		return p.foldBinary(i)
	case Template:
		return p.concatConstants(p.childList(i), "")
	case Call:
		return p.foldCall(i)
	case Index:
		return p.foldIndex(i)
	case Await:
		return p.constantText(p.nthChild(i, 0))
	case Assign:
		return p.constantText(p.nthChild(i, 1))
	}
	return "", false
}

func (p *analyzedTree) foldBinary(i int32) (string, bool) {
	between := ""
	switch p.Nodes[i].Text {
	case "+":
	case "/": // Path('a') / 'b'
		between = "/"
	default:
		return "", false
	}
	left, ok := p.constantText(p.nthChild(i, 0))
	if !ok {
		return "", false
	}
	right, ok := p.constantText(p.nthChild(i, 1))
	return left + between + right, ok
}

// childList returns the children of a node.
func (p *analyzedTree) childList(i int32) []int32 { return slices.Collect(p.childNodes(i)) }

// concatConstants joins constant strings, with a separator between them. It returns false if one of the strings is
// not constant.
func (p *analyzedTree) concatConstants(items []int32, with string) (string, bool) {
	var b strings.Builder
	for k, c := range items {
		s, ok := p.constantText(c)
		if !ok {
			return "", false
		}
		if k > 0 {
			b.WriteString(with)
		}
		if b.WriteString(s); b.Len() > maxFolded {
			return "", false
		}
	}
	return b.String(), true
}

// foldIndex evaluates the Python expression x[::-1], which reverses a constant string x.
func (p *analyzedTree) foldIndex(i int32) (string, bool) {
	s, ok := p.constantText(p.nthChild(i, 0))
	if key := p.nthChild(i, 1); ok && p.hasKind(key, Slice) && p.Nodes[key].Text == "::-1" {
		return reverseText(s), true
	}
	return "", false
}

func reverseText(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// foldCall evaluates a call that creates or converts a constant string, such as chr, atob or os.path.join.
func (p *analyzedTree) foldCall(i int32) (string, bool) {
	callee := p.nthChild(i, 0)
	if callee < 0 {
		return "", false
	}
	args := p.childList(i)[1:]
	if p.hasKind(callee, Member) {
		if s, ok := p.constantMethod(callee, args); ok {
			return s, true
		}
	}
	for _, f := range p.possiblePaths(callee) {
		switch {
		case f == "String.fromCharCode", f == "String.fromCodePoint", f == "chr":
			return p.charactersText(args)
		case f == "bytes" && len(args) == 1 && p.hasKind(args[0], Array):
			return p.charactersText(p.childList(args[0]))
		case f == "atob", strings.HasPrefix(f, "@base64.") && strings.HasSuffix(f, "b64decode"), f == "Buffer.from" && len(args) == 2:
			return p.decodeConstant(args, fromBase64)
		case f == "bytes.fromhex", f == "@binascii.unhexlify":
			return p.decodeConstant(args, fromHex)
		case f == "@codecs.decode":
			return p.decodeConstant(args, decodeRot13)
		case f == "@os.path.join", f == "@path.join", f == "@path.resolve", f == "@pathlib.Path":
			return p.concatConstants(args, "/")
		case f == "@os.path.expanduser", f == "str", f == "String", f == "bytes", f == "decodeURIComponent", f == "unescape":
			if len(args) > 0 {
				return p.constantText(args[0])
			}
		}
	}
	return "", false
}

func (p *analyzedTree) decodeConstant(args []int32, decode func(string) (string, bool)) (string, bool) {
	if len(args) == 0 {
		return "", false
	}
	s, ok := p.constantText(args[0])
	if !ok {
		return "", false
	}
	return decode(s)
}

func fromBase64(s string) (string, bool) {
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding} {
		if b, err := e.DecodeString(strings.TrimSpace(s)); err == nil {
			return string(b), true
		}
	}
	return "", false
}

func fromHex(s string) (string, bool) {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	return string(b), err == nil
}

func decodeRot13(s string) (string, bool) {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, s), true
}

// charactersText returns the string made of character codes, as in String.fromCharCode(97, 98).
func (p *analyzedTree) charactersText(args []int32) (string, bool) {
	var b strings.Builder
	for _, c := range args {
		if p.hasKind(c, Spread) {
			if inner := p.nthChild(c, 0); p.hasKind(inner, Array) {
				s, ok := p.charactersText(p.childList(inner))
				if !ok {
					return "", false
				}
				b.WriteString(s)
				continue
			}
		}
		r, ok := p.literalNumber(c)
		if !ok || r < 0 || r > utf8.MaxRune {
			return "", false
		}
		b.WriteRune(rune(r))
	}
	return b.String(), len(args) > 0
}

// literalNumber returns the value of an integer literal. It returns false for other nodes.
func (p *analyzedTree) literalNumber(i int32) (int64, bool) {
	if !p.hasKind(i, Number) {
		return 0, false
	}
	v, err := strconv.ParseInt(strings.TrimSuffix(p.Nodes[i].Text, "n"), 0, 64)
	return v, err == nil
}

// constantMethod evaluates a call of a method such as trim or replace on a constant string.
func (p *analyzedTree) constantMethod(callee int32, args []int32) (string, bool) {
	object, name := p.nthChild(callee, 0), p.Nodes[callee].Text
	if name == "join" {
		return p.joinCall(object, args)
	}
	s, ok := p.constantText(object)
	if !ok {
		return "", false
	}
	switch name {
	case "toString", "decode", "encode", "strip", "trim", "valueOf":
		return s, true
	case "lower", "toLowerCase":
		return strings.ToLower(s), true
	case "upper", "toUpperCase":
		return strings.ToUpper(s), true
	case "concat":
		tail, ok := p.concatConstants(args, "")
		return s + tail, ok
	case "replace", "replaceAll":
		if len(args) == 2 {
			from, ok1 := p.constantText(args[0])
			to, ok2 := p.constantText(args[1])
			if ok1 && ok2 && from != "" && len(to) <= len(from) {
				return strings.ReplaceAll(s, from, to), true
			}
		}
	}
	return "", false
}

// joinCall evaluates ['a', 'b'].join("") and "".join(['a', 'b']), even if the constants were split or reversed
// before.
func (p *analyzedTree) joinCall(object int32, args []int32) (string, bool) {
	list, with := object, ","
	if len(args) > 0 {
		s, ok := p.constantText(args[0])
		switch {
		case p.Language == Python:
			if with, ok = p.constantText(object); !ok {
				return "", false
			}
			list = args[0]
		case !ok:
			return "", false
		default:
			with = s
		}
	}
	return p.joinList(list, with)
}

func (p *analyzedTree) joinList(list int32, with string) (string, bool) {
	list = p.onlyValue(list)
	if p.hasKind(list, Array) {
		return p.concatConstants(p.childList(list), with)
	}
	callee := p.nthChild(max(list, 0), 0)
	if !p.hasKind(list, Call) || callee < 0 {
		return "", false
	}
	if p.hasKind(callee, Member) {
		object := p.nthChild(callee, 0)
		switch p.Nodes[callee].Text {
		case "reverse", "toReversed":
			s, ok := p.joinList(object, with)
			return reverseText(s), ok
		case "split":
			return p.constantText(object)
		case "map":
			if items := p.onlyValue(object); p.hasKind(items, Array) {
				return p.charactersText(p.childList(items))
			}
		}
		return "", false
	}
	if args := p.childList(list); p.Nodes[callee].Text == "reversed" && len(args) == 2 {
		s, ok := p.constantText(args[1])
		return reverseText(s), ok
	} else if p.Nodes[callee].Text == "map" && len(args) == 3 {
		if items := p.onlyValue(args[2]); p.hasKind(items, Array) {
			return p.charactersText(p.childList(items))
		}
	}
	return "", false
}

// onlyValue returns the expression whose value a variable has, if the program assigns to the variable exactly once.
// If that expression is again such a variable, it goes on to the expression assigned to that one, for at most eight
// steps. It returns any other expression unchanged.
func (p *analyzedTree) onlyValue(i int32) int32 {
	for range 8 {
		if i < 0 || p.Nodes[i].Kind != Name || p.Nodes[i].Bind == 0 || len(p.defs[p.Nodes[i].Bind]) != 1 {
			break
		}
		d := p.defs[p.Nodes[i].Bind][0]
		if d.path != "" || len(d.keys) > 0 || d.node < 0 {
			break
		}
		i = d.node
	}
	return i
}
