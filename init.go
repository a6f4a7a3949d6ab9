// Package retort is one MCP server in front of all of a person's MCP servers, as a Go library: programs in TypeScript
// call the tools of many servers from a sandbox, and only their result is returned.
package retort

import "retort/internal/engine"

// Version is the version of this module.
const Version = engine.Version

// Init must be the first call in main of a program that embeds the engine. The engine starts the same binary to run
// as the guest of a sandbox, as the compiler that checks programs, or as the reaper that cleans up after the engine.
// In such a process, Init performs that role and does not return.
func Init() { engine.Init() }
