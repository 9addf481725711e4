// Package config reads configuration files: those that MCP clients share, and our own, which
// are the same with a few fields more.
//
// [Load] gives a [File]: the servers and settings for a supervisor, and the filters for a
// toolset. It reads JSON, with comments and trailing commas, and YAML. The servers are in
// an object mcpServers (Claude Desktop, Claude Code, Cursor, Windsurf, Gemini CLI,
// LibreChat), servers (VS Code), context_servers (Zed) or mcp (opencode).
//
// # What is not understood
//
// A file never means less than it says. A field that restricts the servers or their tools
// is honoured, or it is an error; so is a field of ours that is misspelt, and a variable
// that cannot be replaced. Fields of other clients that restrict nothing have no effect:
// they are [File.Warnings]. All that is wrong is reported at once, each with its line and
// field.
//
// The fields are listed in docs/configuration.md.
package config
