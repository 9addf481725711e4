// Package real tests sessions on published MCP servers: the reference servers, Playwright's
// server with a Chromium, and gateways and frameworks, over each transport that they speak. Some
// are behind nginx. It also runs published clients on mcpactor serve in front of these servers, and tests the logins of the
// program mcpactor, and those of package login, with the authorization server oidc-provider: each way of a login, tokens
// that are bound to a key, clocks that differ, and refresh tokens that are used twice. The handles of servers are declared as in
// docs/handles.md.
//
// The script install installs the servers. The tests have the build tag real, and need
// Linux:
//
//	tests/real/install
//	go test -tags real ./tests/real
//
// Clients and servers of protocol 2026-07-28, in all combinations with earlier ones, are in tests/eras.
//
// Those with Claude Code, and those of mcpactor adopt, which also run Gemini CLI and opencode, have the build tag claude, and need the
// npm registry: make claude runs them.
package real
