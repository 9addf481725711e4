// Package login gets the OAuth tokens that MCP servers ask for, keeps them, and refreshes them once for all who share them.
//
// A [Login] is a handler for [mcpbridge.OAuth]. With a [Grant] it gets tokens without a person: by the credentials of a client
// ([ClientCredentials]), by the identity of a workload ([WorkloadIdentity]), or by the identity provider of a company ([Enterprise]).
// Without one, a person logs in elsewhere, such as in a browser, and [Login.Keep] keeps the token.
//
// A [Store] keeps logins for the processes of a user ([Folder]) or for several machines ([Shared]). A process claims the
// login before it refreshes a token: many authorization servers end a login whose refresh token is used twice.
//
// Tokens are bound to a key (DPoP, RFC 9449) if the MCP server or its authorization server asks for that.
package login
