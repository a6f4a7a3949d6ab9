package skills

import (
	_ "embed"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// Guide is the text of a SKILL.md that explains to a model how to find tools and write programs with Retort.
//
//go:embed using-retort.md
var Guide string

// GuideName is the name of the folder for Guide.
const GuideName = "using-retort"

// ExportSkill writes a skill into a new folder in dir and returns the path of the new folder. All programs that read
// Agent Skills can use the result: the code, and a SKILL.md whose front matter has only standard fields. ExportSkill
// does not replace an existing folder.
func ExportSkill(s Skill, dir string) (string, *core.Error) {
	description := s.Description
	if description == "" {
		description = "A program for Retort."
	}
	fields := yaml.MapSlice{{Key: "name", Value: s.Name}, {Key: "description", Value: description}}
	personal, metadata := s.splitMetadata()
	if len(metadata) > 0 {
		fields = append(fields, yaml.MapItem{Key: "metadata", Value: metadata})
	}
	front, err := yaml.Marshal(fields)
	if err != nil {
		return "", core.Errorf(core.KindInternal, "skills.export", "%w", err)
	}
	files := map[string]string{documentFile: frontMatterFence + string(front) + personal + frontMatterFence + endBody(s.Body)}
	switch s.Language {
	case core.Python:
		files[pythonFile] = s.Code
	case core.TypeScript:
		files[scriptFile] = s.Code
	}
	return exportFiles(dir, s.Name, files)
}

// splitMetadata splits the front matter of an exported skill into two parts: the fields that a person has added, and
// the content of the field metadata. The latter contains the properties of the skill for which Agent Skills has no
// field.
func (s Skill) splitMetadata() (personal string, metadata yaml.MapSlice) {
	_, raw, err := parseMatter(s.Fields)
	if own, ok := raw["metadata"].(map[string]any); ok && err == nil {
		for _, key := range slices.Sorted(maps.Keys(own)) {
			metadata = append(metadata, yaml.MapItem{Key: key, Value: own[key]})
		}
	}
	for _, item := range []yaml.MapItem{
		{Key: "language", Value: string(s.Language)}, {Key: "triggers", Value: strings.Join(s.Triggers, ", ")},
		{Key: "tags", Value: strings.Join(s.Tags, ", ")},
		{Key: "tools", Value: strings.Join(slices.Sorted(maps.Keys(s.Tools)), ", ")},
	} {
		if item.Value != "" {
			metadata = append(metadata, item)
		}
	}
	return personalFields(s.Fields, raw, "metadata"), metadata
}

// ExportGuide writes Guide into a new folder in dir, in the same way as ExportSkill.
func ExportGuide(dir string) (string, *core.Error) {
	return exportFiles(dir, GuideName, map[string]string{documentFile: Guide})
}

func exportFiles(dir, name string, files map[string]string) (string, *core.Error) {
	folder := filepath.Join(dir, name)
	failed := func(err error) (string, *core.Error) {
		return "", core.Errorf(core.KindInvalidArguments, "skills.export", "the skill could not be exported: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return failed(err)
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return failed(err)
	}
	root, err := seal.OpenRoot(folder)
	if err != nil {
		return failed(err)
	}
	defer root.Close()
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if err := writeFile(root, file, files[file]); err != nil {
			return failed(err)
		}
	}
	return folder, nil
}

// ReadFolder reads a skill from a folder that another program has written. The skill gets the name of the folder. The
// caller must check the skill.
func ReadFolder(dir string) (Skill, *core.Error) {
	root, err := seal.OpenRoot(dir)
	if err != nil {
		return Skill{}, core.Errorf(core.KindInvalidArguments, "skills.import", "the folder cannot be read: %w", err)
	}
	defer root.Close()
	t, err := readFiles(root, ".")
	if isMissing(err) {
		return Skill{}, core.Errorf(
			core.KindInvalidArguments, "skills.import", "%s contains neither %s nor %s nor %s", dir, documentFile, scriptFile,
			pythonFile,
		).
			WithHint("a skill for Retort is a folder with SKILL.md and, unless it contains only instructions, the code")
	}
	if err != nil {
		return Skill{}, core.AsError(err)
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return Skill{}, core.AsError(err)
	}
	s, err := SkillPlace{}.parseSkill(filepath.Base(absolute), t)
	if err != nil {
		return Skill{}, core.AsError(err)
	}
	return s, nil
}
