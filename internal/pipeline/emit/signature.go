package emit

import "retort/internal/run"

func signature(name string, t *run.Tool) string   { return name }
func pySignature(name string, t *run.Tool) string { return name }
func pyFull(name string, t *run.Tool) string      { return name }
