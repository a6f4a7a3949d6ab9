package wire

import (
	"context"
	"encoding/json"
)

// What is asked of a guest before it has a program.
const (
	maxCode  = 8 << 20
	maxFacts = 32 << 20
)

// Parse asks a guest, which has been greeted and has no program, what is in code:
// JSON with what it knows, and bytes with the syntax tree. Both are as trustworthy
// as the guest. When ctx ends, conn is closed. After an error the guest is of no
// use any more.
func Parse(ctx context.Context, conn *Conn, code string) (known json.RawMessage, tree []byte, err error) {
	if len(code) > maxCode {
		return nil, nil, violation("code of %d bytes, at most %d are parsed", len(code), maxCode)
	}
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer release()
	conn.Accept(Sizes{KindParsed: maxFacts})
	if err := conn.Send(Frame{Kind: KindParse, Body: []byte(code)}); err != nil {
		return nil, nil, orCause(ctx, err)
	}
	f, err := conn.Read()
	if err != nil {
		return nil, nil, orCause(ctx, err)
	}
	if !json.Valid(f.Head) {
		return nil, nil, violation("what a guest knows of a program is not JSON")
	}
	return f.Head, f.Body, nil
}

func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
