// Package demo implements the bundled MCP servers: a drive, a CRM, a chat and so on. Their data is generated and is
// the same on every machine and every day. Demonstrations, tests and benchmarks use them as upstream servers, over
// standard input and output or in process.
//
// The package implements the protocol itself (protocol.go) instead of using the SDK. So tool definitions are sent
// byte by byte and in order as they are in tools/*.json, and Retort's client is tested against an implementation that
// shares no code with it.
//
// Some identifiers cause errors on every server that takes identifiers: "forbidden" is refused, and "rate-limited"
// fails on the first, third, fifth, … call. The drive has a document named rate-limited, so that a retry succeeds
// there. Other identifiers that do not exist are not found.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// demoToday is the day on which all data appears to have been created. This package reads no clock, except for the
// deployment in the chat.
var demoToday = time.Date(2026, time.November, 2, 9, 0, 0, 0, time.UTC)

// productServer describes one kind of bundled server, such as the drive or the CRM.
type productServer struct {
	name, title, instructions string
	// build is called on the first call of a tool, because tools/list needs no data.
	build func(*serverBase) map[string]toolFunc
}

// bundledProducts returns the bundled servers in the order of presentation.
func bundledProducts() []productServer {
	return []productServer{
		{"drive", "Nordlys Drive", "Documents, spreadsheets and folders of Nordlys Instruments.", buildDrive},
		{"crm", "Nordlys CRM", "Accounts, contacts, leads, deals and sales meetings. Records carry a version for optimistic locking.", buildCRM},
		{"chat", "Nordlys Chat", "Channels, threads and people of the Nordlys workspace.", buildChat},
		{"calendar", "Nordlys Calendar", "Calendars and events. Times are RFC 3339; the working week is Monday to Friday.", buildCalendar},
		{"mail", "Nordlys Mail", "The mailbox of the sales team. Searching answers ids; read a message to see it.", buildMail},
		{"sheets", "Nordlys Sheets", "Spreadsheets by A1 ranges or by rows.", buildSheets},
		{"issues", "Nordlys Issues", "Repositories of the organisation nordlys with issues and pull requests.", buildIssues},
		{"database", "Nordlys Warehouse", "A relational store. query reads; execute writes.", buildDatabase},
		{"files", "Nordlys Files", "A file tree below /srv/nordlys.", buildFiles},
	}
}

// ServerNames lists the bundled servers.
func ServerNames() []string {
	var names []string
	for _, p := range bundledProducts() {
		names = append(names, p.name)
	}
	return names
}

// DemoServer represents one instance of a bundled server with its own data. Connections to the same instance see each
// other's changes.
type DemoServer struct {
	productServer
	definitions []*toolDefinition
	base        serverBase
	tools       func() map[string]toolFunc
}

// Open returns a new instance of the server called name. If there is no such server, the error lists the existing
// ones.
func Open(name string) (*DemoServer, error) {
	all := bundledProducts()
	i := slices.IndexFunc(all, func(p productServer) bool { return p.name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no demo server %q; there are %s", name, strings.Join(ServerNames(), ", "))
	}
	definitions, err := loadDefinitions(name)
	if err != nil {
		return nil, err
	}
	s := &DemoServer{productServer: all[i], definitions: definitions}
	s.tools = sync.OnceValue(func() map[string]toolFunc { return s.build(&s.base) })
	return s, nil
}

// RecordedEffects lists every change that calls have made, oldest first.
func (s *DemoServer) RecordedEffects() []RecordedEffect {
	s.base.lock.RLock()
	defer s.base.lock.RUnlock()
	return slices.Clone(s.base.effects)
}

// Close frees the resources of the instance. It must have no open connections.
func (s *DemoServer) Close() error {
	s.base.lock.Lock()
	defer s.base.lock.Unlock()
	if s.base.close == nil {
		return nil
	}
	return s.base.close()
}

// Dial opens a connection to this instance, in process. The connection ends when it is closed. ctx bounds only the
// dialling.
func (s *DemoServer) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	return s.dial(ctx, func() {})
}

// dial opens a connection to the server. After the connection has ended, it calls the function ended.
func (s *DemoServer) dial(ctx context.Context, ended func()) (io.ReadWriteCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	go func() {
		defer ended()
		defer server.Close()
		_ = s.Serve(context.WithoutCancel(ctx), server, server) // the client sees the end of the stream
	}()
	return client, nil
}

// ServeByName serves a new instance of the named server over in and out, with one JSON-RPC message per line, until in
// ends or ctx is done.
func ServeByName(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	s, err := Open(name)
	if err != nil {
		return err
	}
	return errors.Join(s.Serve(ctx, in, out), s.Close())
}

// DialFunc returns a function that opens in-process connections to the named server. Each connection gets a new
// instance.
func DialFunc(name string) func(context.Context) (io.ReadWriteCloser, error) {
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		s, err := Open(name)
		if err != nil {
			return nil, err
		}
		return s.dial(ctx, func() { _ = s.Close() })
	}
}
