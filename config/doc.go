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
// its line and field. With [Loader.LeaveOut], an error in the entry of a server costs that server
// only.
//
// # Projects of Claude Code
//
// The file ~/.claude.json has servers of the user in mcpServers, and others for each folder under
// projects. Those of the working directory, or else of the root of its repository, take
// precedence over those of the user, and its disabledMcpServers are left out. Other projects
// have no effect.
//
// # Fields of a server
//
//	command, args, cwd: a stdio server. command may be a list of all words, or an object with
//	    path, args and env
//	env, environment: variables for its process. Use one of the two. In files of VS Code, a value may be a
//	    number; null has no effect
//	envFile: a file with lines such as NAME="value". env takes precedence
//	url, serverUrl, httpUrl: an HTTP server. Use one of the three
//	headers: headers of every request
//	type, transport, transportType: stdio or local; http, streamable-http or streamableHttp; sse;
//	    remote. Use one of the three. WebSockets are an error
//	source: custom. extension is an error
//	disabled, enabled: whether the server is left out
//	allow, deny: names and patterns of tools, as in toolset.Filter
//	readOnly: true leaves only the tools that the server says only read, as in toolset.Filter
//	includeTools, enabledTools, tools: names, as in allow. ["*"] is all. An empty list is an
//	    error, here and in allow
//	excludeTools, disabledTools: names, as in deny
//	inheritEnv, protocolVersion, noStream, noCookies, insecureCredentials, maxResult: the fields
//	    of mcpbridge.Server
//	keepAlive: the same, a duration such as "30s"
//	customMethods, customNotifications: the same, lists
//	limits: the same, an object with maxSessions, maxInFlight, maxWaiting, maxDials,
//	    idleTimeout, connectTimeout, callTimeout, drainTimeout, closeTimeout,
//	    handlerTimeout, maxRepeats, and bounds: a list of mcpbridge.Bound, objects with tool, shared, perMinute, total and
//	    inFlight. Unknown fields are errors
//	handles: what its tools mint and the supervisor releases, a list of mcpbridge.Handle, objects with mint, path, pattern, release,
//	    argument, list, listed, gone, full, max, idle, own, unique and bound. Unknown fields are errors
//	cleanup: a command that ends containers, as mcpbridge.Cleanup, an object with command, args,
//	    timeout and records. Unknown fields are errors
//	setup: tool calls that run first on every new MCP session:
//	    [{"tool": "login", "arguments": {"token": "${TOKEN}"}}]
//	scope: the scope that its tools run in, in place of that of the toolset, such as that of a team
//	share: true is the scope shared
//	oauth, auth: how to log in to a server at a URL, see [OAuth], an object with clientId, clientSecret, scopes (a list, or a text
//	    with blanks), redirectUri or callbackPort, and enabled, also as Zed, LibreChat and Cursor write them: client_id,
//	    CLIENT_ID, scope. false is no login. Use one of the two. Other fields have no effect.
//	    With a field grant, the server gets its tokens without a person, see [login.Grant], and unknown fields are errors:
//	    grant: client_credentials, workload_identity or enterprise
//	    clientId, clientSecret or clientKeyFile with clientKeyId, issuer, scopes: see [login.Client]
//	    tokenFile: of workload_identity
//	    idTokenFile, and provider, an object with issuer, clientId and the other fields of a client: of enterprise
//	displayName, slug, metadata: metadata of its tools
//
// A ~ at the beginning of command, cwd, envFile, clientKeyFile, tokenFile and idTokenFile is the home directory of the user. It
// is also in args of files of VS Code. Elsewhere an argument is passed on as it is, with a warning.
//
// A name with characters that a server may not have is changed, with a warning: "My Server"
// becomes "My-Server". A name with letters of another script than the Latin one, or with nothing that a name may have,
// gets a hash: "高德地图 MCP" becomes "MCP-46bb98ea". It is an error if two servers get the same name.
//
// # Fields of the object supervisor
//
// The object supervisor, beside the servers, has these fields of [supervisor.Config]:
//
//	maxSessions, maxSessionsPerTenant, maxInFlight, maxWaiting, maxWaitingTotal, maxDials,
//	    maxStarts, bounds, maxRepeats, idleTimeout, connectTimeout, callTimeout, drainTimeout, closeTimeout, handlerTimeout, handleGrace,
//	    backoffBase, backoffMax, budget, budgetHalfLife, coolDown, failFast, leaveOpen, keepResults, maxKeptResult, dropResults
//
// Durations are strings such as "1m30s". A limit of -1, or "-1ns", is none. Three
// fields have no counterpart there:
//
//	store: the path of a file that remembers sessions
//	roots: whether servers are told that the client has roots
//	tenantSeparator: makes the part of a scope before this text the tenant: with "/", the
//	    tenant of acme/42 is acme
//
// # Fields of the object clients
//
// The object clients, beside the servers, says which tools clients of mcpactor serve get. Its keys are names that clients give
// themselves, or patterns of these: see [File.Client]. Each value is an object with
//
//	allow, deny: lists of patterns: see [ParsePattern]
//	readOnly: as in a server
//
// # Variables
//
// Variables are replaced in all strings. The value of a variable is not searched for further
// variables.
//
//	${VAR}, ${env:VAR}: the environment variable. One that is not set is an error
//	${VAR:-default}: the environment variable, or the default if it is not set or empty
//	${input:id}: what Loader.Input returns
//	{{VAR}}: what Loader.Variable returns for VAR. Without it, an error
//	${workspaceFolder}, ${workspaceFolderBasename}: the folder that contains .vscode or .cursor,
//	    in a file in one of these
//	${userHome}, ${pathSeparator}, ${/}: the home directory of the user, and the separator of
//	    paths
//	${file:path}: the content of a file, without the white space around it
//	${scope}: the scope of each key
//	$VAR: the environment variable, in a folder .gemini, and in files with fields of Gemini CLI. Elsewhere an error,
//	    except in a script, which is the argument after -c
//	{env:VAR}, {file:path}: as ${env:VAR} and ${file:path}, in files of opencode. Elsewhere an
//	    error
//
// Any other ${…} is an error: otherwise the text itself might be sent in place of a credential.
// ${env:scope} is the environment variable scope.
//
// # The scope
//
// ${scope} stands for the scope of each key in the places below, and is an error with its line
// anywhere else. A scope that would mean something else there fails its calls with
// [messages.CodeInvalid].
//
//	args: as it is, unless it could be code. In an argument with a slash, a scope with a slash,
//	    "." and ".." are refused, and at the beginning of an argument a scope that begins
//	    with "-"
//	env: as it is. No shell sees it. In a value with a slash, refused as in args
//	cwd: as it is. The directory is made if the part before the scope exists. Refused: a scope
//	    that is not the name of one directory, and links that lead out of it
//	url, in its path and query: escaped. In the path, a scope that leads out of it is refused,
//	    such as ../x
//	headers: as it is. Refused: white space, quotation marks, commas, semicolons, backslashes,
//	    and what is not ASCII
//	setup, in its arguments: as it is, as a JSON string. Refused as in args
//
// Whoever chooses the scope must not choose what runs: ${scope} is an error in the arguments of
// shells and remote shells, of an interpreter or package runner that gets code or the name of
// what it runs, right after -c, --command, /c or /k, and beside characters that would need
// escaping. Such programs are also found among the arguments, as in sudo bash -c.
package config
