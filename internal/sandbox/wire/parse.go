package wire

import (
	"context"
	"encoding/json"
)

// What is asked of a guest before it has a program.
const (
	maxCode     = 8 << 20
	maxParsed   = 32 << 20
	maxCompiled = 64 << 10
)

// Parse asks a guest, which has been greeted and has no program, what is in code:
// JSON with what it knows, and bytes with the syntax tree. Both are as trustworthy
// as the guest, which compiles code then: see Compiled. When ctx ends, conn is
// closed. After an error the guest is of no use any more.
func Parse(ctx context.Context, conn *Conn, code string) (known json.RawMessage, tree []byte, err error) {
	if len(code) > maxCode {
		return nil, nil, violation("code of %d bytes, at most %d are parsed", len(code), maxCode)
	}
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer release()
	if err := conn.Send(Frame{Kind: KindParse, Body: []byte(code)}); err != nil {
		return nil, nil, orCause(ctx, err)
	}
	return parsed(ctx, conn, Sizes{KindParsed: maxParsed})
}

// Compiled waits until a guest has compiled what it was asked to parse: the JSON
// says whether it could. The rest is as with Parse.
func Compiled(ctx context.Context, conn *Conn) (json.RawMessage, error) {
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer release()
	told, _, err := parsed(ctx, conn, Sizes{KindCompiled: maxCompiled})
	return told, err
}

func parsed(ctx context.Context, conn *Conn, sizes Sizes) (json.RawMessage, []byte, error) {
	conn.Accept(sizes)
	f, err := conn.Read()
	if err != nil {
		return nil, nil, orCause(ctx, err)
	}
	if !json.Valid(f.Head) {
		return nil, nil, violation("what a guest says of a program is not JSON")
	}
	return f.Head, f.Body, nil
}

func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
