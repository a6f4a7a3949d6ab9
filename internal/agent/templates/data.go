package templates

// The data with which templates are rendered. Fields without a value are present in the data as "", false, 0 or null.

// SystemData holds the data with which the template system.md is rendered.
type SystemData struct {
	Language string `json:"language"` // "TypeScript", "JavaScript" or "Python"
	Python   bool   `json:"python"`
}

// TaskData holds the data with which the template task.md and the templates of program skeletons are rendered.
type TaskData struct {
	Task     string      `json:"task"`
	Language string      `json:"language"`
	Python   bool        `json:"python"`
	Inputs   string      `json:"inputs"` // inputs of the task as JSON; "" if the task has no inputs
	Tools    []ToolData  `json:"tools"`
	Skills   []SkillUse  `json:"skills"`
	Effects  []EffectOne `json:"effects"` // calls with effects that earlier programs of the task have made
}

// ToolData describes one tool in the data of a prompt.
type ToolData struct {
	Name       string `json:"name"`       // name by which a program calls the tool
	Definition string `json:"definition"` // definition of the tool, in one line or in full
	Effect     string `json:"effect"`     // "read", "write" or "irreversible"
}

// SkillUse describes a saved skill (a stored program) that may fit the task.
type SkillUse struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Use         string `json:"use"`
	Usage       string `json:"usage"`
}

// EffectOne describes one call with effects that an earlier program of the task has made.
type EffectOne struct {
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"` // arguments of the call, as JSON
	State     string `json:"state"`     // what is known about the call's result
}

// RepairData holds the data with which the template repair.md is rendered.
type RepairData struct {
	Program bool        `json:"program"` // whether the model's answer contained a program
	Status  string      `json:"status"`
	Kind    string      `json:"kind"`
	Message string      `json:"message"`
	Hint    string      `json:"hint"`
	Frame   string      `json:"frame"`
	Line    int         `json:"line"`
	Effects []EffectOne `json:"effects"`
	Left    int         `json:"left"` // number of attempts after the next one
}

// SkillData holds the data with which the template skill.md is rendered. The result is the part of SKILL.md below its
// front matter.
type SkillData struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Language    string         `json:"language"` // language of a code fence: "ts" or "python"
	Use         string         `json:"use"`
	Functions   []FunctionData `json:"functions"`
	Example     string         `json:"example"` // arguments of an example on the command line, with a leading space
	Tools       []string       `json:"tools"`
}

// FunctionData describes one function of a skill, for SKILL.md.
type FunctionData struct {
	Signature string `json:"signature"`
	Doc       string `json:"doc"`
}

// WrapperData holds the data with which the template of a wrapper file is rendered. A wrapper file is a generated file
// with the functions through which programs call a server's tools. The rendered text must contain Code unchanged.
type WrapperData struct {
	Path string `json:"path"`
	Code string `json:"code"`
}

// StubData holds the data with which the template that describes a tool to a model is rendered. The rendered text must
// contain Definition unchanged.
type StubData struct {
	Server     string `json:"server"`
	Tool       string `json:"tool"`       // name by which the server calls the tool
	Name       string `json:"name"`       // name by which a program calls the tool
	Definition string `json:"definition"` // signature of the tool, in one line or in full
	Full       bool   `json:"full"`
}

// ExampleData returns example data for a template. Rendering the template with this data shows whether it has errors.
func ExampleData(name TemplateName) any {
	effects := []EffectOne{{"crm.updateRecord", `{"recordId":"1"}`, "it was made"}}
	switch name {
	case System:
		return SystemData{"TypeScript", false}
	case Task, SkeletonTS, SkeletonPy:
		tool := ToolData{"sample.listThings", "sample.listThings({limit?: number}): Promise<any>", "read"}
		if name == SkeletonPy {
			tool = ToolData{"sample.list_things", "sample.list_things(limit: int = unset) -> Any", "read"}
		}
		return TaskData{
			Task: "count the open issues", Language: "TypeScript", Python: name == SkeletonPy, Inputs: `{"repo":"r"}`,
			Tools:   []ToolData{tool},
			Skills:  []SkillUse{{"find-things", "Finds things.", "import { find } from './skills/find-things';", "find(title: string)"}},
			Effects: effects,
		}
	case Repair:
		return RepairData{true, "error", "tool_error", "it has failed", "try another way", "> 1 | x", 1, effects, 1}
	case Skill:
		return SkillData{
			"find-things", "Finds things.", "ts", "import { find } from './skills/find-things';",
			[]FunctionData{{"find(title: string)", "Finds."}}, " --arg title=…", []string{"sample.listThings"},
		}
	case StubTS, StubPy:
		return StubData{"sample", "listThings", "sample.listThings", ExampleDefinition, true}
	}
	return WrapperData{"servers/sample/listThings.ts", ExampleCode(name)}
}

// ExampleDefinition is the tool definition in the example data.
const ExampleDefinition = "sample.listThings(): Promise<any>"

// ExampleCode returns the code in the example data for the template of a wrapper file. A wrapper file contains the
// functions with which programs call a server's tools.
func ExampleCode(name TemplateName) string {
	if name == WrapperPy {
		return "example_of_a_wrapper = 1\n"
	}
	return "export const exampleOfAWrapper = 1;\n"
}
