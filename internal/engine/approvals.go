package engine

import (
	"errors"
	"io"
	"sync"

	"retort/internal/catalog"
	"retort/internal/pipeline"
	"retort/internal/pipeline/approval"
)

// openApprovals returns the options for asking a person. Permanent approvals are stored in the data directory, and
// the key that seals them in the user's key directory. closeAll must be called when no execution can ask any more.
func openApprovals(
	c *configuration, data *dataAssembly, known *catalog.Catalog,
) (_ pipeline.ApprovalOptions, closeAll func() error, err error) {
	s := c.config.Settings.Approval
	var opened closeStack
	var permanent approval.RuleStore
	if key := c.UserDir().ApprovalsKey(); key != "" && c.config.Home != "" {
		permanent = approval.OpenKept(c.home.ApprovalRules(), key, c.policy.ViewFor("").PolicyVersion())
	}
	table := approval.New(s.Timeout, trustingRules{permanent, known})
	bounds := approval.QuestionBounds{Questions: s.Questions, Declined: s.Declined}
	table.SetBounds(bounds)
	if s.Webhook.URL != "" {
		webhook, err := approval.NewWebhook(s.Webhook.URL, s.Webhook.Secret, c.log)
		if err != nil {
			return pipeline.ApprovalOptions{}, nil, err
		}
		table.AddChannel(maskChannel(c.secrets, webhook.AskApprover))
		opened.push(webhook.Close)
	}
	if data.audit != nil {
		table.RecordTo(data.audit)
	}
	return pipeline.ApprovalOptions{Table: table, Bounds: bounds.WithDefaults(), Wait: s.Wait, AskFirst: s.AskFirst.IsOn()}, opened.Close, nil
}

// trustingRules wraps a store of permanent approvals, which may be nil. When a person permanently approves a tool
// whose definition has changed, it also marks the new definition as trusted.
type trustingRules struct {
	approval.RuleStore
	catalog *catalog.Catalog
}

func (t trustingRules) IsAllowed(r approval.AlwaysRule) bool {
	return t.RuleStore != nil && t.RuleStore.IsAllowed(r)
}

func (t trustingRules) AllowRule(r approval.AlwaysRule) error {
	var failed error
	if tool, ok := t.catalog.Toolset().WithHidden().FindExact(r.Server, r.Tool); ok && tool.Change != nil {
		failed = t.catalog.TrustTools(r.Server, map[string]string{r.Tool: r.Pin})
	}
	if t.RuleStore == nil {
		return failed
	}
	return errors.Join(failed, t.RuleStore.AllowRule(r))
}

// approvalSocket opens a socket through which the command line answers approvals. It does so when the first approval
// waits for an answer.
type approvalSocket struct {
	mu     sync.Mutex
	opened io.Closer // nil before the first approval, or if opening failed
	tried  bool      // opening was tried, or the engine is closed
}

// newApprovalSocket returns an approvalSocket. Its socket is opened in the data directory when the first approval in
// table waits for a person. Without a configured data directory the command line cannot find the engine, so no socket
// is opened.
func newApprovalSocket(c *configuration, table *approval.ApprovalTable) *approvalSocket {
	a := &approvalSocket{}
	if c.config.Home != "" {
		table.NotifyWaiting(func() { a.openOnce(c, table) })
	}
	return a
}

func (a *approvalSocket) openOnce(c *configuration, table *approval.ApprovalTable) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tried {
		return
	}
	a.tried = true
	opened, err := approval.OpenDesk(c.home.Approvals(), table)
	if err != nil {
		c.log.Warn("retort approvals cannot reach this engine", "error", err)
		return
	}
	a.opened = opened
}

// Close closes the socket, and keeps it from being opened later.
func (a *approvalSocket) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tried = true
	if a.opened == nil {
		return nil
	}
	return a.opened.Close()
}
