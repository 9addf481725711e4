// Package config reads the configuration files of MCP clients. A file may also have the
// fields of this package, such as allow, deny and supervisor.
//
// [Load] returns a [File]: the servers and settings for a supervisor, and the filters for a
// toolset. It reads JSON, with comments and trailing commas, and YAML. The servers are in
// an object mcpServers (Claude Desktop, Claude Code, Cursor, Windsurf, Gemini CLI,
// LibreChat), servers (VS Code), context_servers (Zed) or mcp (opencode).
//
// # Unsupported fields
//
// The package never ignores a restriction. If it does not support a field that restricts
// the servers or their tools, that field is an error. A misspelt field of this package and a
// variable that cannot be replaced are errors, too. Other fields of other clients have no
// effect, and are in [File.Warnings]. Load reports all errors of a file at once, each with
// its line and field.
//
// docs/configuration.md lists the fields.
package config
