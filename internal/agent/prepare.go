package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"retort/internal/agent/templates"
	"retort/internal/core"
)

// findTools searches for tools and skills that fit the task. It first removes from the query everything that a model
// must not see, because the search may send the query to an external endpoint.
func (w *taskRun) findTools(ctx context.Context) *core.Error {
	if refused := w.recordPhase(core.PhaseDiscover, map[string]any{}, "looking for tools"); refused != nil {
		return refused
	}
	var refused *core.Error
	if w.shown, refused = w.Screen.Text(w.task.Session, w.task.Description); refused != nil {
		return refused
	}
	if w.inputs, refused = w.Screen.JSON(w.task.Session, w.task.Inputs); refused != nil {
		return refused
	}
	w.Finder.Settled(ctx, func(text string) { w.reportProgress(core.PhaseDiscover, text) })
	found, err := w.Finder.Search(ctx, core.ToolQuery{
		Settled: true, Text: w.shown, Detail: core.DetailName, Limit: w.options.Tools, Language: w.task.Language, Weak: true,
	})
	if err != nil {
		return core.AsError(err)
	}
	w.found = found
	w.only = append([]string{}, w.task.RequiredTools...)
	if len(w.only) == 0 {
		for _, t := range found.Tools {
			w.only = append(w.only, t.Server+"__"+t.Tool)
		}
	}
	w.offerSkills()
	return nil
}

// offerSkills adds the skills that match the task to the prompt. If the task does not list its tools, the program may
// also call the tools of these skills.
func (w *taskRun) offerSkills() {
	for _, f := range w.found.Skills[:min(len(w.found.Skills), maxSkills)] {
		s, refused := w.Finder.LoadSkill(f.Name, "", w.task.Session)
		if refused != nil || (s.Language == core.Python) != (w.task.Language == core.Python) || len(s.Warnings) > 0 {
			continue
		}
		if len(w.task.RequiredTools) == 0 {
			w.only = append(w.only, s.Tools...)
		}
		w.skills = append(w.skills, templates.SkillUse{Name: s.Name, Description: s.Description, Use: f.Use, Usage: s.Usage})
	}
}

// defineTools loads the descriptions of the tools for the first program: one line for each tool.
func (w *taskRun) defineTools(ctx context.Context) *core.Error {
	if refused := w.recordPhase(
		core.PhaseDefine, map[string]any{"tools": len(w.only), "skills": len(w.skills)},
		fmt.Sprintf("%d tools", len(w.only)),
	); refused != nil {
		return refused
	}
	var refused *core.Error
	if w.offers, refused = w.Finder.Offer(ctx, w.only, w.task.Language, false); refused != nil && len(w.task.RequiredTools) > 0 {
		return refused
	}
	if refused != nil { // the tool of the skill no longer exists
		w.skills = nil
		w.only = slices.DeleteFunc(w.only, func(name string) bool {
			_, gone := w.Finder.Offer(ctx, []string{name}, w.task.Language, false)
			return gone != nil
		})
		w.offers, refused = w.Finder.Offer(ctx, w.only, w.task.Language, false)
	}
	if refused == nil {
		refused = w.selectTools(ctx)
	}
	return refused
}

// selectTools limits the tools in the prompt if the task names whole servers with many tools. It keeps the tools that
// the task names one by one. From each named server it keeps the tools that a search finds. The program may still call
// all tools.
func (w *taskRun) selectTools(ctx context.Context) *core.Error {
	if len(w.offers) <= w.options.Tools {
		return nil
	}
	found := map[[2]string]bool{}
	for _, o := range w.offers {
		if _, searched := found[[2]string{o.Server}]; !o.Whole || searched {
			continue
		}
		found[[2]string{o.Server}] = true
		fits, err := w.Finder.Search(ctx, core.ToolQuery{
			Settled: true, Text: w.shown, Detail: core.DetailName, Server: o.Server, Limit: w.options.Tools,
			Language: w.task.Language, Weak: true,
		})
		if err != nil {
			return core.AsError(err)
		}
		for _, t := range fits.Tools {
			found[[2]string{t.Server, t.Tool}] = true
		}
	}
	fitting := slices.DeleteFunc(
		slices.Clone(w.offers), func(o core.OfferedTool) bool { return o.Whole && !found[[2]string{o.Server, o.Tool}] },
	)
	if len(fitting) == 0 {
		fitting = w.offers[:w.options.Tools]
	}
	w.offers = fitting
	return nil
}

func (w *taskRun) isPython() bool { return w.task.Language == core.Python }

func (w *taskRun) languageName() string {
	switch w.task.Language {
	case core.Python:
		return "Python"
	case core.JavaScript:
		return "JavaScript"
	}
	return "TypeScript"
}

// templateData returns the task's data for the prompt and skeleton templates.
func (w *taskRun) templateData() templates.TaskData {
	d := templates.TaskData{
		Task: w.shown, Language: w.languageName(), Python: w.isPython(), Inputs: string(w.inputs), Skills: w.skills, Effects: w.pastEffects(),
		Tools: []templates.ToolData{},
	}
	for _, o := range w.offers {
		d.Tools = append(d.Tools, templates.ToolData{Name: o.Name, Definition: o.Definition, Effect: o.Effect})
	}
	return d
}

// pastEffects returns the newest calls with effects that earlier programs of the task have made, for a prompt. If
// there are more than maxPastCalls, the last element gives the number of older calls.
func (w *taskRun) pastEffects() []templates.EffectOne {
	list := []templates.EffectOne{}
	all := w.effects.ListEffects()
	for _, m := range all[max(0, len(all)-maxPastCalls):] {
		list = append(list, templates.EffectOne{Tool: m.Server + "." + m.Tool, Arguments: string(boundResult(m.Shown)), State: m.State})
	}
	if more := len(all) - maxPastCalls; more > 0 {
		list = append(list, templates.EffectOne{Tool: fmt.Sprintf("and %d calls before them", more)})
	}
	return list
}

// maxPastCalls bounds the number of calls of earlier programs that a prompt lists.
const maxPastCalls = 100

// contextOutcome returns the Outcome of a task for which no model is configured. It has everything that the caller
// needs to write the program itself.
func (w *taskRun) contextOutcome(ctx context.Context) core.Outcome {
	p := &core.TaskContext{Tools: []core.FoundTool{}, Definitions: []core.ToolDefinition{}, Skills: w.found.Skills}
	for _, o := range w.offers {
		p.Definitions = append(p.Definitions, core.ToolDefinition{Name: o.Name, Definition: o.Definition})
		o.Definition = ""
		p.Tools = append(p.Tools, o.FoundTool)
	}
	e := core.Errorf(core.KindInvalidArguments, "orchestrator", "no model configured").
		WithHint(
			`write the program from these definitions and pass it to execute_code; or set model: {provider: openai, url: "http://127.0.0.1:11434/v1", model: NAME} in retort.yaml; with a client that supports sampling, neither is needed`,
		)
	var refused *core.Error
	if p.Skeleton, refused = w.buildSkeleton(ctx); refused != nil {
		return w.refusedOutcome(refused)
	}
	return w.finishTask(core.Outcome{ExecutionID: w.id, Status: core.StatusRejected, Error: e, TaskContext: p, Warnings: w.found.Warnings})
}

// buildSkeleton returns a skeleton of a program for the task, which the caller completes. It returns an error if the
// skeleton does not pass the checks for programs.
func (w *taskRun) buildSkeleton(ctx context.Context) (string, *core.Error) {
	name := templates.SkeletonTS
	if w.isPython() {
		name = templates.SkeletonPy
	}
	text, refused := w.Templates.Render(name, w.templateData())
	if refused != nil {
		return "", refused
	}
	req := core.ExecutionRequest{Session: w.task.Session, Language: w.task.Language, Code: text, Only: w.only}
	if refused := w.Runner.Judge(ctx, req); refused != nil {
		return "", core.Errorf(
			core.KindInternal, "orchestrator", "the skeleton does not pass the checks: %s (line %d)", refused.Message,
			refused.Line,
		).
			WithHint("if .retort/templates has %s, fix it", name)
	}
	return strings.TrimSpace(text) + "\n", nil
}
