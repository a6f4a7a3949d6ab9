package rules

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// text returns the constant string that an expression evaluates to, however it is put together.
func (p *program) text(i int32) (string, bool) {
	if i < 0 {
		return "", false
	}
	if p.is(i, String) {
		return p.Nodes[i].Text, true
	}
	m := &p.texts[i]
	if m.state == unasked {
		m.state = busy
		p.deep++
		defer func() { p.deep-- }()
		s, ok := p.fold(i)
		if p.budget -= len(s); ok && p.budget >= 0 {
			m.value, m.state = s, known
		} else {
			m.state = none
		}
	}
	return m.value, m.state == known
}

func (p *program) fold(i int32) (string, bool) {
	n := &p.Nodes[i]
	switch n.Kind {
	case Name:
		if n.Bind > 0 && len(p.defs[n.Bind]) == 1 && p.deep < maxDeep {
			if d := p.defs[n.Bind][0]; d.path == "" && len(d.keys) == 0 {
				return p.text(d.node)
			}
		}
	case Binary:
		return p.foldBinary(i)
	case Template:
		return p.concat(p.list(i), "")
	case Call:
		return p.foldCall(i)
	case Index:
		return p.foldIndex(i)
	case Await:
		return p.text(p.child(i, 0))
	case Assign:
		return p.text(p.child(i, 1))
	}
	return "", false
}

func (p *program) foldBinary(i int32) (string, bool) {
	between := ""
	switch p.Nodes[i].Text {
	case "+":
	case "/": // Path('a') / 'b'
		between = "/"
	default:
		return "", false
	}
	left, ok := p.text(p.child(i, 0))
	if !ok {
		return "", false
	}
	right, ok := p.text(p.child(i, 1))
	return left + between + right, ok
}

// list returns the children of a node.
func (p *program) list(i int32) []int32 { return slices.Collect(p.children(i)) }

// concat joins constant strings.
func (p *program) concat(items []int32, with string) (string, bool) {
	var b strings.Builder
	for k, c := range items {
		s, ok := p.text(c)
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

// foldIndex evaluates x[::-1].
func (p *program) foldIndex(i int32) (string, bool) {
	s, ok := p.text(p.child(i, 0))
	if key := p.child(i, 1); ok && p.is(key, Slice) && p.Nodes[key].Text == "::-1" {
		return reversed(s), true
	}
	return "", false
}

func reversed(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// foldCall evaluates a call that converts constant strings.
func (p *program) foldCall(i int32) (string, bool) {
	callee := p.child(i, 0)
	if callee < 0 {
		return "", false
	}
	args := p.list(i)[1:]
	if p.is(callee, Member) {
		if s, ok := p.method(callee, args); ok {
			return s, true
		}
	}
	for _, f := range p.path(callee) {
		switch {
		case f == "String.fromCharCode", f == "String.fromCodePoint", f == "chr":
			return p.characters(args)
		case f == "bytes" && len(args) == 1 && p.is(args[0], Array):
			return p.characters(p.list(args[0]))
		case f == "atob", strings.HasPrefix(f, "@base64.") && strings.HasSuffix(f, "b64decode"), f == "Buffer.from" && len(args) == 2:
			return p.decoded(args, fromBase64)
		case f == "bytes.fromhex", f == "@binascii.unhexlify":
			return p.decoded(args, fromHex)
		case f == "@codecs.decode":
			return p.decoded(args, rot13)
		case f == "@os.path.join", f == "@path.join", f == "@path.resolve", f == "@pathlib.Path":
			return p.concat(args, "/")
		case f == "@os.path.expanduser", f == "str", f == "String", f == "bytes", f == "decodeURIComponent", f == "unescape":
			if len(args) > 0 {
				return p.text(args[0])
			}
		}
	}
	return "", false
}

func (p *program) decoded(args []int32, decode func(string) (string, bool)) (string, bool) {
	if len(args) == 0 {
		return "", false
	}
	s, ok := p.text(args[0])
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

func rot13(s string) (string, bool) {
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

// characters evaluates a string given by character codes.
func (p *program) characters(args []int32) (string, bool) {
	var b strings.Builder
	for _, c := range args {
		if p.is(c, Spread) {
			if inner := p.child(c, 0); p.is(inner, Array) {
				s, ok := p.characters(p.list(inner))
				if !ok {
					return "", false
				}
				b.WriteString(s)
				continue
			}
		}
		r, ok := p.number(c)
		if !ok || r < 0 || r > utf8.MaxRune {
			return "", false
		}
		b.WriteRune(rune(r))
	}
	return b.String(), len(args) > 0
}

// number returns the integer value of a literal.
func (p *program) number(i int32) (int64, bool) {
	if !p.is(i, Number) {
		return 0, false
	}
	v, err := strconv.ParseInt(strings.TrimSuffix(p.Nodes[i].Text, "n"), 0, 64)
	return v, err == nil
}

// method evaluates a method call on a constant.
func (p *program) method(callee int32, args []int32) (string, bool) {
	object, name := p.child(callee, 0), p.Nodes[callee].Text
	if name == "join" {
		return p.joinCall(object, args)
	}
	s, ok := p.text(object)
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
		tail, ok := p.concat(args, "")
		return s + tail, ok
	case "replace", "replaceAll":
		if len(args) == 2 {
			from, ok1 := p.text(args[0])
			to, ok2 := p.text(args[1])
			if ok1 && ok2 && from != "" && len(to) <= len(from) {
				return strings.ReplaceAll(s, from, to), true
			}
		}
	}
	return "", false
}

// joinCall evaluates ['a', 'b'].join(”) and ”.join(['a', 'b']), also of constants that were split and reversed
// before.
func (p *program) joinCall(object int32, args []int32) (string, bool) {
	list, with := object, ","
	if len(args) > 0 {
		s, ok := p.text(args[0])
		switch {
		case p.Language == Python:
			if with, ok = p.text(object); !ok {
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

func (p *program) joinList(list int32, with string) (string, bool) {
	list = p.only(list)
	if p.is(list, Array) {
		return p.concat(p.list(list), with)
	}
	callee := p.child(max(list, 0), 0)
	if !p.is(list, Call) || callee < 0 {
		return "", false
	}
	if p.is(callee, Member) {
		object := p.child(callee, 0)
		switch p.Nodes[callee].Text {
		case "reverse", "toReversed":
			s, ok := p.joinList(object, with)
			return reversed(s), ok
		case "split":
			return p.text(object)
		case "map":
			if items := p.only(object); p.is(items, Array) {
				return p.characters(p.list(items))
			}
		}
		return "", false
	}
	if args := p.list(list); p.Nodes[callee].Text == "reversed" && len(args) == 2 {
		s, ok := p.text(args[1])
		return reversed(s), ok
	} else if p.Nodes[callee].Text == "map" && len(args) == 3 {
		if items := p.only(args[2]); p.is(items, Array) {
			return p.characters(p.list(items))
		}
	}
	return "", false
}

// only returns the only expression that is assigned to a variable, or the expression itself.
func (p *program) only(i int32) int32 {
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
