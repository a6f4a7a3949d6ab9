package core

import (
	"fmt"
	"time"
)

// DefinitionFlag describes suspicious text in a tool's definition. The text is hidden from the model, unless it is a
// name or value that calls need.
type DefinitionFlag struct {
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
	Where  string `json:"where"`          // "description", "inputSchema.properties.q.description"
	Text   string `json:"text,omitempty"` // the beginning of what was found, with invisible characters escaped
}

func (f DefinitionFlag) String() string {
	return fmt.Sprintf("%s: %s (%s): %s", f.Where, f.Reason, f.Rule, f.Text)
}

// ChangePolicy says what happens to a tool whose definition differs from the trusted one.
type ChangePolicy string

// Values of ChangePolicy, strictest first.
const (
	ChangesBlock ChangePolicy = "block" // it is hidden, and calls are refused
	ChangesAsk   ChangePolicy = "ask"   // a person is asked about each call
	ChangesNote  ChangePolicy = "note"  // calls leave, with a warning
)

// DefinitionChange describes how a tool's definition differs from the trusted one.
type DefinitionChange struct {
	Server  string       `json:"server"`
	Tool    string       `json:"tool"`
	Policy  ChangePolicy `json:"policy"`
	Pin     string       `json:"pin"`               // of the definition as it is now
	Was     string       `json:"was,omitempty"`     // pin of the trusted one; empty if that is not known
	Trusted time.Time    `json:"trusted,omitzero"`  // when that was trusted
	Noticed time.Time    `json:"noticed,omitzero"`  // when the other one was first seen
	Unknown string       `json:"unknown,omitempty"` // why the trusted definition is unknown
	Diff    string       `json:"diff"`              // in lines that begin with "-", "+" or a blank; invisible characters are escaped
}

// Error returns the error for a program that calls the changed tool.
func (c *DefinitionChange) Error() *Error {
	what := fmt.Sprintf(
		"the definition of %s.%s has changed since it was trusted on %s", c.Server, c.Tool,
		c.Trusted.UTC().Format(time.DateOnly),
	)
	if c.Unknown != "" {
		what = fmt.Sprintf("the trusted definition of %s.%s is not known: %s", c.Server, c.Tool, c.Unknown)
	}
	name := c.Server + "." + c.Tool
	if c.Unknown != "" {
		name = c.Server
	}
	return Errorf(KindToolChanged, "catalog.trust", "%s; it cannot be called until a person trusts it again", what).
		WithHint(
			"continue without it, and ask the person to review it in a terminal: retort tools --changed %s, then retort tools --trust %s",
			c.Server, name,
		).AtTool(c.Server, c.Tool)
}

// RequiresApproval reports whether every call of the tool needs approval because its definition differs from the trusted one.
func (t *Tool) RequiresApproval() bool { return t.Change != nil && t.Change.Policy == ChangesAsk }

// WarningText returns a warning for a call that was sent although the definition has changed.
func (c *DefinitionChange) WarningText() string {
	return fmt.Sprintf(
		"the definition of %s.%s differs from the trusted one; retort tools --changed %s shows how",
		c.Server, c.Tool, c.Server,
	)
}
