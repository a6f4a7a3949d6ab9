package client

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

//lint:file-ignore SA1019 roots, sampling and logging are passed on between those who have them; only 2026-07-28 gives them up

// ServerOffers lists the features that a server has in addition to tools.
type ServerOffers struct{ Resources, Subscribe, Prompts, Completions, Logging bool }

func offersOf(c *mcp.ServerCapabilities) ServerOffers {
	if c == nil {
		return ServerOffers{}
	}
	return ServerOffers{
		Resources: c.Resources != nil, Subscribe: c.Resources != nil && c.Resources.Subscribe,
		Prompts: c.Prompts != nil, Completions: c.Completions != nil, Logging: c.Logging != nil,
	}
}

// Request makes a request that has no effects, such as prompts/get, for the client of ctx. It returns the result byte
// for byte. params must be a JSON object without _meta.
func (p *Pool) Request(ctx context.Context, server, method string, params json.RawMessage) (result json.RawMessage, _ error) {
	n, err := p.findInstances(server)
	if err != nil {
		return nil, err.AtTool(server, "")
	}
	s, done, err := n.takeInstance(ctx)
	if err != nil {
		return nil, err.AtTool(server, "")
	}
	defer done()
	err = s.runOnSession(ctx, "upstream.request", func(ctx context.Context, sess *serverSession, x *pendingCall) (err error) {
		if refused := core.FinalCheck(ctx); refused != nil {
			return refused
		}
		result, err = sess.askServer(ctx, x, method, func(meta json.RawMessage) json.RawMessage { return requestParams(meta, params) })
		return err
	})
	if err != nil {
		return nil, err.AtTool(server, "")
	}
	return result, nil
}

func requestParams(meta, params json.RawMessage) json.RawMessage {
	own := oneLine(params)
	if len(meta) == 0 {
		return own
	}
	return mergeObjects(append(append(json.RawMessage(`{"_meta":`), meta...), '}'), own)
}

// oneLine returns a JSON object without line breaks between its tokens. A line break would end the message that
// contains the object.
func oneLine(object json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil || len(members) == 0 {
		return json.RawMessage(`{}`)
	}
	text, err := json.Marshal(object) // compacts
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return text
}

// ListOf collects the items that a server lists by a method other than tools/list. member is the name of the member,
// such as "resources", that contains the items in each page of the list. ListOf returns nothing if the server does
// not support the method. If the server requires logins, it returns the items that the caller of ctx may see.
func (p *Pool) ListOf(ctx context.Context, server, method, member string) (all []json.RawMessage, _ error) {
	n, err := p.findInstances(server)
	if err != nil {
		return nil, err.AtTool(server, "")
	}
	s := n.main
	if s.spec.Auth != nil {
		own, done, err := n.takeInstance(ctx)
		if err != nil {
			return nil, err.AtTool(server, "")
		}
		defer done()
		s = own
	}
	err = s.runOnSession(ctx, "upstream.list", func(ctx context.Context, sess *serverSession, _ *pendingCall) (err error) {
		all, err = sess.listPages(ctx, method, member, s.spec.MaxMessage)
		return err
	})
	if err != nil {
		return nil, err.AtTool(server, "")
	}
	return all, nil
}

// OffersOf returns the features of a server apart from tools, as of the last connection.
func (p *Pool) OffersOf(server string) ServerOffers {
	s, err := p.mainInstance(server)
	if err != nil {
		return ServerOffers{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.Offers
}

// logLevels lists the levels of log messages, the most detailed first.
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

func severityRank(level string) int {
	for i, l := range logLevels {
		if l == level {
			return i
		}
	}
	return len(logLevels)
}

// SetLogLevel sets the lowest level of log messages that a client wants. The Pool requests from servers the lowest
// level that any client wants.
func (p *Pool) SetLogLevel(level string) {
	if severityRank(level) == len(logLevels) || p.logLevel() != "" && severityRank(level) >= severityRank(p.logLevel()) {
		return
	}
	p.level.Store(&level)
	var wg sync.WaitGroup
	for _, n := range p.allInstances() {
		s := n.main
		s.mu.Lock()
		sess := s.session
		s.mu.Unlock()
		if sess != nil {
			wg.Go(func() { sess.setLevel(level) })
		}
	}
	wg.Wait()
}

func (p *Pool) logLevel() string {
	if level := p.level.Load(); level != nil {
		return *level
	}
	return ""
}

// setLevel sends the wanted log level to a server whose protocol version has a handshake.
func (s *serverSession) setLevel(level string) {
	if level == "" || s.era.protocol >= protocolModern || !s.listingOf().Offers.Logging {
		return
	}
	ctx, cancel := context.WithTimeout(s.link.ctx, cancelTimeout)
	defer cancel()
	_, _ = s.link.callMethod(ctx, &pendingCall{}, methodLevel, json.RawMessage(`{"level":`+string(quoteJSON(level))+`}`))
}

// followProgress returns a new progress token. With this token, the server can report the progress of the call x.
func (l *serverLink) followProgress(x *pendingCall) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followed++
	token := "retort-" + strconv.FormatInt(l.followed, 10)
	l.tokens[token] = x
	return token
}

func (l *serverLink) unfollowProgress(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tokens, token)
}

// unknownMethod reports whether an error means that the server does not know the method.
func unknownMethod(err error) bool {
	var rpc *jsonrpc.Error
	return errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound
}
