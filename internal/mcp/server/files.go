package server

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

// FileKeeper writes, reads and lists files in the workspace of a session.
type FileKeeper interface {
	WriteFile(session, name, content, encoding string, appends bool) (core.FileWritten, error)
	ReadFile(session, name string, offset, limit int64, encoding string) (core.FilePart, error)
	ListFiles(session, below, glob string) (core.FileList, error)
}

func (s *Server) writeFile(_ context.Context, req *mcp.CallToolRequest) (any, error) {
	var a struct {
		Path     string `json:"path"`
		Content  string `json:"content"`
		Encoding string `json:"encoding"`
		Append   bool   `json:"append"`
		Session  string `json:"session"`
	}
	if err := decodeArguments(req, &a); err != nil {
		return nil, err
	}
	if err := checkRequired("path", a.Path); err != nil {
		return nil, err
	}
	return s.engine.WriteFile(a.Session, a.Path, a.Content, a.Encoding, a.Append)
}

func (s *Server) readFile(_ context.Context, req *mcp.CallToolRequest) (any, error) {
	var a struct {
		Path     string `json:"path"`
		Offset   int64  `json:"offset"`
		Limit    int64  `json:"limit"`
		Encoding string `json:"encoding"`
		Session  string `json:"session"`
	}
	if err := decodeArguments(req, &a); err != nil {
		return nil, err
	}
	if err := checkRequired("path", a.Path); err != nil {
		return nil, err
	}
	part, err := s.engine.ReadFile(a.Session, a.Path, a.Offset, a.Limit, a.Encoding)
	if err != nil || part.Image == nil {
		return part, err
	}
	about, err := marshalPlain(map[string]any{"path": part.Path, "bytes": part.Bytes, "mimeType": part.MIMEType})
	if err != nil {
		return nil, err
	}
	image := &mcp.ImageContent{Data: part.Image, MIMEType: part.MIMEType}
	return &mcp.CallToolResult{Content: []mcp.Content{image, &mcp.TextContent{Text: string(about)}}, StructuredContent: about}, nil
}

func (s *Server) listFiles(_ context.Context, req *mcp.CallToolRequest) (any, error) {
	var a struct {
		Path    string `json:"path"`
		Glob    string `json:"glob"`
		Session string `json:"session"`
	}
	if err := decodeArguments(req, &a); err != nil {
		return nil, err
	}
	return s.engine.ListFiles(a.Session, a.Path, a.Glob)
}
