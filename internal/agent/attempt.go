package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"retort/internal/agent/model"
	"retort/internal/agent/templates"
	"retort/internal/core"
)

// tryPrograms asks the model for programs and runs them, until one completes the task or all attempts are used up.
func (w *taskRun) tryPrograms(ctx context.Context) core.Outcome {
	for {
		w.attempt++
		reply, refused := w.requestProgram(ctx)
		if refused != nil {
			w.attempt--
			return w.reportModelFailure(refused)
		}
		code, missing := w.programOf(ctx, reply)
		if missing == "" {
			w.code = code
			return w.runProgram(ctx)
		}
		if w.attempt >= w.options.Attempts {
			return w.refusedOutcome(core.Errorf(
				core.KindRuntime, "orchestrator", "the model did not write a program in %d attempts: %s", w.attempt, missing,
			).
				WithHint("describe the task more precisely, or use a model that writes programs"))
		}
		if refused := w.renderRepair(templates.RepairData{Message: missing}, reply.Text); refused != nil {
			return w.refusedOutcome(refused)
		}
	}
}

// reportModelFailure returns the Outcome of a task whose model no longer answers. If programs of the task have already
// made calls with effects, the Outcome has a warning with the number of those calls.
func (w *taskRun) reportModelFailure(e *core.Error) core.Outcome {
	o := w.refusedOutcome(e)
	if n := len(w.effects.ListEffects()); n > 0 {
		o.Warnings = append(o.Warnings, fmt.Sprintf("%d calls with effects were already made; they are listed under calls", n))
	}
	return o
}

// requestProgram asks the model for the next program and counts the tokens used.
func (w *taskRun) requestProgram(ctx context.Context) (model.ModelReply, *core.Error) {
	p, refused := w.buildPrompt()
	if refused != nil {
		return model.ModelReply{}, refused
	}
	if refused := w.recordPhase(
		core.PhaseWrite, map[string]any{"model": w.model.Name(), "input_tokens": w.sizeOf(p)},
		"the model is writing a program",
	); refused != nil {
		return model.ModelReply{}, refused
	}
	told := time.Now()
	p.Told = func(bytes int) {
		if time.Since(told) > time.Second {
			told = time.Now()
			w.reportProgress(core.PhaseWrite, fmt.Sprintf("the model is writing a program: %d bytes", bytes))
		}
	}
	w.use.Requests++
	reply, refused := w.model.Reply(ctx, p)
	w.use.InputTokens, w.use.OutputTokens = w.use.InputTokens+max(reply.Input, 0), w.use.OutputTokens+max(reply.Output, 0)
	w.use.Estimated = w.use.Estimated || reply.Estimated
	if reply.Model != "" {
		w.use.Name = reply.Model
	}
	return reply, refused
}

// buildPrompt returns the prompt for the next program. The prompt contains the task. After a failed attempt it also
// contains the last program and its error, but no earlier attempts.
func (w *taskRun) buildPrompt() (model.ModelPrompt, *core.Error) {
	system, refused := w.Templates.Render(templates.System, templates.SystemData{Language: w.languageName(), Python: w.isPython()})
	if refused == nil && w.prompt == "" {
		w.prompt, refused = w.Templates.Render(templates.Task, w.templateData())
	}
	if refused != nil {
		return model.ModelPrompt{}, refused
	}
	p := model.ModelPrompt{System: system, Messages: []model.PromptMessage{{Role: model.User, Text: w.prompt}}, Count: w.Count}
	if w.repair != "" {
		p.Messages = append(p.Messages, model.PromptMessage{Role: model.Assistant, Text: w.answer}, model.PromptMessage{Role: model.User, Text: w.repair})
	}
	for i := range p.Messages { // the whole prompt again, to redact definitions and errors as well
		if p.Messages[i].Text, refused = w.Screen.Text(w.task.Session, p.Messages[i].Text); refused != nil {
			return model.ModelPrompt{}, refused
		}
	}
	left := w.options.Tokens - w.use.InputTokens - w.use.OutputTokens - w.sizeOf(p)
	if p.MaxTokens = min(w.options.MaxTokens, left); p.MaxTokens < minAnswerTokens {
		return p, core.Errorf(
			core.KindLimit, "orchestrator",
			"the task has used %d tokens of the model, and another attempt would exceed the limit of %d",
			w.use.InputTokens+w.use.OutputTokens, w.options.Tokens,
		).
			WithHint("raise orchestrator.tokens in retort.yaml to allow more")
	}
	return p, nil
}

// minAnswerTokens is the smallest number of output tokens with which the model is asked for a program. If the task's
// budget has fewer left, no further attempt is made.
const minAnswerTokens = 64

func (w *taskRun) sizeOf(p model.ModelPrompt) int {
	n := w.Count(p.System)
	for _, m := range p.Messages {
		n += w.Count(m.Text)
	}
	return n
}

// runProgram runs the current program of the task and decides how to continue.
func (w *taskRun) runProgram(ctx context.Context) core.Outcome {
	facts, id := map[string]any{}, ""
	if w.task.Job != "" {
		id = core.ProgramOf(w.task.Job, w.attempt)
		facts["execution"] = id
	}
	if refused := w.recordPhase(core.PhaseRun, facts, fmt.Sprintf("checking and running program %d", w.attempt)); refused != nil {
		return w.refusedOutcome(refused)
	}
	req := core.ExecutionRequest{
		ID: id, Noted: w.task.Job != "", Session: w.task.Session, Client: w.task.Client, Language: w.task.Language,
		Code: w.inputsPrelude() + w.code,
		Only: w.only, Effects: w.effects, Private: w.model != nil, Limits: w.task.Budget.Limits,
		Progress: func(calls int) {
			w.reportProgress(core.PhaseRun, fmt.Sprintf("program %d: %d tool calls", w.attempt, calls))
		},
	}
	return w.decideNext(ctx, w.Runner.Execute(ctx, req))
}

// decideNext decides what follows after a program has ended. The task waits for approval, ends, or continues with a
// repair of the program.
func (w *taskRun) decideNext(ctx context.Context, o core.Outcome) core.Outcome {
	if o.Status == core.StatusPendingApproval {
		w.Parked.putTask(o.ExecutionID, w)
		return w.finishTask(o)
	}
	o.Error = w.adjustLine(o.Error)
	if w.model == nil || !isRepairable(o) || ctx.Err() != nil {
		return w.finishTask(o)
	}
	if w.attempt >= w.options.Attempts {
		o.Warnings = append(o.Warnings, fmt.Sprintf("the model has used all %d attempts", w.attempt))
		return w.finishTask(o)
	}
	if refused := w.renderRepair(w.buildDiagnosis(ctx, o), w.code); refused != nil {
		return w.finishTask(o)
	}
	next := w.tryPrograms(ctx)
	if next.ExecutionID == w.id { // no other program has run, so the Outcome is this program's
		o.Warnings = append(o.Warnings, "it could not be repaired: "+next.Error.Message)
		return w.finishTask(o)
	}
	return next
}

// isRepairable reports whether another program may succeed where this one failed. It returns false if a person or a
// rule has refused the program.
func isRepairable(o core.Outcome) bool {
	switch o.Status {
	case core.StatusTimeout, core.StatusMemoryLimit, core.StatusOutputLimit, core.StatusCallLimit:
		return true
	case core.StatusRejected, core.StatusError:
		return o.Error != nil && slices.Contains([]core.Kind{
			core.KindSyntax, core.KindType, core.KindPolicy, core.KindRuntime, core.KindToolError, core.KindToolNotFound,
			core.KindInvalidArguments, core.KindLimit, core.KindUpstreamTimeout,
		}, o.Error.Kind)
	}
	return false
}

// buildDiagnosis returns the data for the repair prompt. It removes parts that look like instructions to a model from
// the texts, because these come from servers.
func (w *taskRun) buildDiagnosis(ctx context.Context, o core.Outcome) templates.RepairData {
	d := templates.RepairData{Program: true, Status: string(o.Status)}
	if e := o.Error; e != nil {
		d.Kind, d.Line = string(e.Kind), e.Line
		d.Message, d.Hint, d.Frame = w.Screen.Cleaned(
			clipText(e.Message),
		), w.Screen.Cleaned(clipText(e.Hint)), w.Screen.Cleaned(clipText(e.Frame))
		w.defineMore(ctx, *e)
	}
	return d
}

// defineMore loads the full definitions of the tools that a failed program used. The first prompt describes each tool
// in only one line.
func (w *taskRun) defineMore(ctx context.Context, e core.Error) {
	if e.Kind != core.KindType && e.Kind != core.KindInvalidArguments && e.Kind != core.KindToolError {
		return
	}
	for i, o := range w.offers {
		if w.full[o.Name] || !mentionsTool(w.code, o) {
			continue
		}
		more, refused := w.Finder.Offer(ctx, []string{o.Server + "__" + o.Tool}, w.task.Language, true)
		if refused == nil && len(more) == 1 {
			w.offers[i], w.full[o.Name], w.prompt = more[0], true, ""
		}
	}
}

// renderRepair renders the repair prompt. The prompt is the message that follows the model's last answer in the
// conversation.
func (w *taskRun) renderRepair(d templates.RepairData, answer string) *core.Error {
	d.Effects, d.Left = w.pastEffects(), w.options.Attempts-w.attempt-1
	text, refused := w.Templates.Render(templates.Repair, d)
	if refused != nil {
		return refused
	}
	if d.Program {
		answer = "```\n" + answer + "\n```"
	}
	w.answer, w.repair = clippedTo(answer, maxAnswer), text
	return nil
}

// IsWaiting reports whether a task of the principal is waiting for approval of this execution.
func (o *Orchestrator) IsWaiting(execution string) bool {
	return o.Parked.getTask(execution, o.Principal) != nil
}

// Resume continues a task whose program was waiting for a person's approval. The Outcome may be pending again, if
// another program needs approval.
func (o *Orchestrator) Resume(ctx context.Context, execution string, patience time.Duration) core.Outcome {
	p := o.Parked.getTask(execution, o.Principal)
	if p == nil {
		return o.Runner.Resume(ctx, execution, patience)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.Parked.getTask(execution, o.Principal) != p { // another caller has resumed it
		return o.Runner.Resume(ctx, execution, patience)
	}
	out := o.Runner.Resume(ctx, execution, patience)
	if out.Status == core.StatusPendingApproval {
		return p.work.finishTask(out)
	}
	o.Parked.removeTask(execution)
	resumed := *o
	resumed.Finder, resumed.Runner = p.work.Finder, p.work.Runner // with the rules under which the task began
	p.work.Orchestrator = &resumed
	return p.work.decideNext(ctx, out)
}
