package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/policy"
	"retort/internal/sandbox"
	"retort/internal/workspace"
)

// refuseExcess returns an error if a request asks for more than the settings allow. Requests may only be stricter
// than the settings.
func (p *Pipeline) refuseExcess(req core.ExecutionRequest) *core.Error {
	refuse := func(format string, args ...any) *core.Error {
		return core.Errorf(core.KindInvalidArguments, "pipeline.request", format, args...)
	}
	if most := p.Limits.Memory; most > 0 && req.Limits.Memory > most {
		return refuse(
			"memory_limit: %s exceeds the maximum for programs, %s (resourceLimits.memory)",
			inMB(req.Limits.Memory), inMB(most),
		)
	}
	if req.AllowNetwork != nil && *req.AllowNetwork && narrowedNetwork(p.Network, p.Policy).IsClosed() {
		return refuse("allow_network: programs have no network here, so only false is allowed").WithHint(
			"leave it out; only the person who runs Retort can open the network",
		)
	}
	_, refused := parseFileScope(req.FilesystemScope)
	return refused
}

func inMB(bytes int64) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MB", bytes>>20)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// fileScope selects the part of the workspace that a request's program may see. The zero value selects all of it.
type fileScope struct {
	folder   string // relative to the workspace; all of it if empty
	readOnly bool
	none     bool
}

func parseFileScope(written string) (fileScope, *core.Error) {
	switch written {
	case "", core.FilesWorkspace:
		return fileScope{}, nil
	case core.FilesReadOnly:
		return fileScope{readOnly: true}, nil
	case core.FilesNone:
		return fileScope{none: true}, nil
	}
	clean := path.Clean("/" + written)
	folder, inside := strings.CutPrefix(clean+"/", "/workspace/")
	if !inside || strings.Contains(written, "\x00") || strings.Contains("/"+written+"/", "/../") {
		return fileScope{}, core.Errorf(
			core.KindInvalidArguments, "pipeline.request",
			"filesystem_scope: %q is more than a program may access; the maximum is %s", clippedScope(written),
			core.FilesWorkspace,
		).
			WithHint("%s, %s, %s, or a folder such as ./workspace/reports", core.FilesWorkspace, core.FilesReadOnly, core.FilesNone)
	}
	return fileScope{folder: strings.TrimSuffix(folder, "/")}, nil
}

func clippedScope(written string) string {
	const most = 100
	return strings.ToValidUTF8(written[:min(len(written), most)], "")
}

// refuseUse returns an error if a program with this fileScope may not use the file in the given way, and nil if it
// may.
func (s fileScope) refuseUse(name string, use policy.FileUse) *core.Error {
	inside := s.folder == "" || name == s.folder || strings.HasPrefix(name, s.folder+"/")
	leads := name == "." || strings.HasPrefix(s.folder, name+"/")
	if !s.none && (inside || use == policy.LookAt && leads) && (use != policy.WriteFile || !s.readOnly) {
		return nil
	}
	what := "read"
	if use == policy.WriteFile {
		what = "written"
	}
	return core.Errorf(
		core.KindPolicy, "pipeline.request", "EACCES: ./workspace/%s: it may not be %s (filesystem_scope %s)",
		strings.TrimPrefix(name, "."), what, s,
	)
}

func (s fileScope) String() string {
	switch {
	case s.none:
		return core.FilesNone
	case s.readOnly:
		return core.FilesReadOnly
	case s.folder != "":
		return "./workspace/" + s.folder
	}
	return core.FilesWorkspace
}

// mayUse returns an error if the policy or the request's own limit on files forbids the program to use a workspace
// file in the given way, such as writing it. Otherwise it returns nil.
func (x *programExecution) mayUse(name string, use policy.FileUse) *core.Error {
	if refused := x.pipeline.Policy.CheckFile(name, use); refused != nil {
		return refused
	}
	scope, refused := parseFileScope(x.req.FilesystemScope)
	if refused != nil {
		return refused
	}
	return scope.refuseUse(name, use)
}

// fileRestriction returns the function that checks each of the program's accesses to a workspace file, or nil if the
// program may use all files.
func (x *programExecution) fileRestriction() func(string, workspace.AccessKind) *core.Error {
	if scope, refused := parseFileScope(x.req.FilesystemScope); refused == nil && scope == (fileScope{}) && x.pipeline.Policy.AllFiles() {
		return nil
	}
	uses := map[workspace.AccessKind]policy.FileUse{
		workspace.LookAt: policy.LookAt, workspace.ReadFile: policy.ReadFile, workspace.WriteFile: policy.WriteFile,
	}
	return func(name string, use workspace.AccessKind) *core.Error { return x.mayUse(name, uses[use]) }
}

// approvalReason returns the reason why the program needs approval whatever its risk is: the request or the settings
// demand it. It returns "" if there is no such reason.
func (x *programExecution) approvalReason() string {
	if x.req.ForceApproval {
		return "force_approval: the request requires approval of the program by a person"
	}
	return x.pipeline.Policy.ApprovalRequired()
}

// approveDirect asks for approval of a call that a client makes directly, without a program, if the settings require
// approval of every program. Otherwise a client could avoid the approval by making direct calls.
func (x *programExecution) approveDirect(ctx context.Context, name string, arguments json.RawMessage) *core.Error {
	rule := x.approvalReason()
	t, known := x.tools.FindTool(name)
	if rule == "" || !known {
		return nil
	}
	d := x.pipeline.Policy.DecideCall(t, arguments)
	if d.Verdict == policy.Deny || x.whyAsk(t, core.ToolCall{Server: t.Server, Tool: t.Name, Arguments: arguments}, d, false) != "" {
		return nil // it is refused, or asked about on its way out
	}
	q := x.aboutCall(rule, t, core.ToolCall{Server: t.Server, Tool: t.Name, Arguments: arguments}, d)
	_, refused := x.askApproval(ctx, q)
	return refused
}

// sandboxFolders returns the workspace folders that are mounted for the program's commands, each marked as writable
// or read-only. It creates writable folders that do not exist.
func (x *programExecution) sandboxFolders() (all []sandbox.MountedPath, err error) {
	scope, refused := parseFileScope(x.req.FilesystemScope)
	if refused != nil {
		return nil, refused
	}
	add := func(name string, writable bool) {
		if !x.files.IsPlain(name) {
			return // it is not there, or a link leads to it
		}
		all = append(all, sandbox.MountedPath{Below: x.files.Folder(), Name: name, Target: path.Join("/workspace", name), Writable: writable})
	}
	writable := policy.CommonPaths(x.pipeline.Policy.WritableFolders(), scope.writableFolders())
	for _, name := range policy.CommonPaths(x.pipeline.Policy.ReadableFolders(), scope.readableFolders()) {
		if !slices.Contains(writable, name) {
			add(name, false)
		}
	}
	for _, name := range writable {
		if err := x.files.MkdirAll(name); err != nil && !x.files.IsPlain(name) { // else it is a file
			return nil, err
		}
		add(name, true)
	}
	slices.SortStableFunc(all, func(a, b sandbox.MountedPath) int { return strings.Compare(a.Target, b.Target) })
	return all, nil
}

// readableFolders returns the workspace folders that a program with this fileScope may read.
func (s fileScope) readableFolders() []string {
	switch {
	case s.none:
		return []string{}
	case s.folder != "":
		return []string{s.folder}
	}
	return []string{"."}
}

// writableFolders returns the workspace folders that a program with this fileScope may read and write.
func (s fileScope) writableFolders() []string {
	if s.readOnly {
		return []string{}
	}
	return s.readableFolders()
}
