// Package mcpbridge is what programs need to know of the bridge, the only part of this module that speaks
// MCP: how a server is configured, what authorizes its requests, what a store keeps of its sessions, and what an
// error means. The bridge itself is in mcpbridge/internal. It opens and uses sessions over stdio, streamable HTTP, HTTP+SSE or
// in memory, and knows nothing of actors. In this package, a session is an MCP session.
//
// # What an error means
//
// The errors of the SDK do not say whether a request was sent, accepted or answered. The
// bridge therefore watches the wire, and says in an [Error] what became of a call ([Class]) and of its
// session ([Fate]).
//
// # One send
//
// A request is sent once. It counts as sent as soon as the bridge gives it to the HTTP transport, or
// writes it to a pipe, unless there is proof that the server did not get it: the transport got no
// connection, the server had ended the idle connection that it got, an HTTP/2 server said that it did not process the
// request, or the closing brace of the message was never written.
//
// Requests have ids of ten digits, which fit in 32 bits, and which no other connection of this
// process uses. A response with the id of another connection is dropped and counted.
// Over streamable HTTP a response counts only in the answer to its own POST. If that was a 202 or broke
// off, the response may come on any stream of the session.
//
// [Error.MayHaveRun] lists the ways in which a request ends, and whether the call may have run.
//
// # What is odd
//
// What routes a message, or decides what becomes of a call, is read strictly: the id, the method, the code of an error, resultType,
// and what asks for input. Everything else is carried as it came, and what cannot be shown is shown as text that names it. A
// content that cannot be read becomes a text with its JSON, data in another form of base64 is decoded, and any other part
// that cannot be read is left out; [messages.Receipt.Odd] names it. An odd hint permits no replay. A number that a float64 holds
// is a float64, and any other one a [encoding/json.Number], where any value is allowed. A list whose cursors lead nowhere is what
// has come so far: see [messages.Receipt.Incomplete]. A result without the list that was asked for is an error. A message that
// exceeds [Server.MaxResult] fails its own call, and a notification that does is dropped. Over stdio and HTTP+SSE, a message
// that does not end within 1 GiB after that size ends the session. Over stdio, a batch that exceeds MaxResult does, too. Over HTTP, a message is read although the
// blank line after its event is missing, and a response although its body has no end or another content type.
//
// # How expiry is recognized
//
// The bridge decides by evidence whether a server knows a session. The wording of an error is no evidence: servers
// report an unknown session with any status and in any language, and tools and logins have
// sessions, too. These rules are for requests that carry a session id. Without a session id
// nothing expires.
//
//   - A 404 or 410, unless it is a JSON-RPC error with the id of the request, or a page in HTML: the
//     session has expired. If the session has answered nothing since initialize, the request is
//     first repeated for up to 2 s.
//   - A result, the error -32602 to a resources/read whose URI it repeats, or one of the errors
//     -32042, -32020, -32021 and -32022: the session is alive.
//   - A 429, no connection, or a connection that broke: this says nothing about the session.
//   - A 502, 503 or 504 without the id of the request, or a page in HTML with 404 or 410: a front
//     has answered in place of the server. The session is unheard.
//   - Any other 4xx or 5xx, a redirect that is not followed, any other JSON-RPC error, or an
//     event stream that ends empty: there is doubt.
//
// A session without an id may be in doubt as well, if its protocol is older than 2026-07-28. A 404
// without a session id is a wrong URL.
//
// Doubt is settled once for all callers of a session. A caller waits for 5 s at most, with a JSON-RPC error on
// 2xx for 1 s at most, and never past its deadline. The bridge checks the session with two requests that change
// nothing: a ping, and one page of a list that the server has declared. Each check is judged alone. A result counts
// only if its request was sent after the refusal had arrived.
//
//   - If the list has a result, or the ping where no list is declared, the session is alive. For 30 s,
//     a refusal with the same status, code and text, of the same operation and tool, causes no doubt,
//     unless a front answers in the meantime. Another text leads to other checks, once a second at most.
//   - If a check is refused with the status and code of the call, the bridge opens a second session, the
//     control, and repeats the check there. If the control answers otherwise on 2xx, and
//     the first session refuses once more, the first session has expired: the next dial adopts the
//     control, and one DELETE is sent for the expired session. If the control has the id of the first session, that
//     has expired as well, and no DELETE is sent. If the control refuses in the same way,
//     or cannot be opened, the session is alive, and the control is ended. Calls that are not sent yet
//     wait for the verdict, for 1 s at most. The error that a server has no ping (-32601) is an answer.
//   - Any other refusal of a check leads to the control as well if a front has answered, or if the refusal that caused
//     the doubt was that of a stream or a notification.
//   - If the server cannot be reached, a front answers, or the server answers 429 or 408, the checks are
//     repeated as long as a caller waits. If that takes too long because of a front, the call is [Lost], and its session
//     [Unheard].
//   - After another refusal of a check, or no answer, the doubt remains. The caller gets its own error, which says
//     that the call may have run. A later refusal that causes doubt leads to other checks, but not before 1 s
//     has passed. This interval grows with each such result, up to 30 s.
//   - If the session is alive, and a check was refused with 400 in the words of the call, the check is repeated, four
//     times at most. If it is answered, and then refused again, the error says that the server may be balanced without
//     affinity.
//
// An operation that a front has answered returns at once ([Unheard]); after a page with 404 or 410 it returns with the
// verdict. If it is safe to run twice, it can be repeated. While a session is unheard, operations are withheld: they are
// not sent, see [Error]. As long as somebody waits until the session is heard again, the checks are repeated
// after 100 ms, and then less often, down to once a second. After 2 s a control is opened as well: some servers refuse an
// unknown session with a 503.
//
// A refusal by an expired session can prove that the call did not run: if a check, and a check with a session id that was
// never issued, are refused in the same words, the server refuses a session before it looks at a call. The
// bridge sends the latter once: before the control, or after it if the refusal has the id of its request. If
// sessions have no ids, a 4xx without the id of the call is believed. After any other refusal the call may have run: a
// 5xx, a 302, 303 or 408, an event stream that ends empty, or other words.
//
// HTTP+SSE and stdio have no control. If the list is refused in the same way as the
// call, the session counts as broken, unless the refusal is the error -32601 or -32602.
//
// An attempt to resume a session runs the same checks, and an answer to the ping is enough. Any other result leads to
// the control. Resuming fails only if the control cannot be opened.
//
// Checks and controls use the current credentials, and do not refresh them.
//
// # What is sent where
//
// All HTTP requests of a session, including the DELETE that ends it, follow redirects within
// the origin of the server's URL, carry the cookies of the session, and go to no other origin.
// They carry the headers of the configuration, the user of the URL, and the [Credentials] of
// the key. When the server refuses the credentials, they are refreshed, once for all requests
// that wait, and the request is repeated. Error texts do not contain values that were sent recently.
//
// # What a stdio server inherits
//
// A stdio server inherits the variables below from this process, and gets those in [Server.Env].
// None of them is meant for a secret. Names are compared without regard to case. Addresses with a
// user or a password are not inherited, except those of proxies, and neither are functions that a
// shell has exported. [Server.InheritEnv] makes it inherit everything.
//
//	the user:
//	    HOME LOGNAME PATH SHELL TERM USER
//	the user on Windows:
//	    APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE PROGRAMFILES
//	    SYSTEMDRIVE SYSTEMROOT TEMP USERNAME USERPROFILE ALLUSERSPROFILE COMMONPROGRAMFILES
//	    COMMONPROGRAMFILES(X86) COMMONPROGRAMW6432 COMPUTERNAME COMSPEC NUMBER_OF_PROCESSORS OS
//	    PROGRAMDATA PROGRAMFILES(X86) PROGRAMW6432 PSMODULEPATH PUBLIC USERDOMAIN WINDIR
//	locale, terminal, temporary files:
//	    LANG LANGUAGE TZ TZDIR LC_* TMPDIR TMP TEMP COLORTERM NO_COLOR
//	display and session:
//	    DISPLAY WAYLAND_DISPLAY XAUTHORITY DBUS_SESSION_BUS_ADDRESS XDG_CACHE_HOME XDG_CONFIG_DIRS
//	    XDG_CONFIG_HOME XDG_CURRENT_DESKTOP XDG_DATA_DIRS XDG_DATA_HOME XDG_RUNTIME_DIR
//	    XDG_SESSION_TYPE XDG_STATE_HOME
//	proxies:
//	    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY NPM_CONFIG_PROXY NPM_CONFIG_HTTPS_PROXY
//	    PIP_PROXY NODE_USE_ENV_PROXY
//	certificates:
//	    SSL_CERT_FILE SSL_CERT_DIR NIX_SSL_CERT_FILE NODE_EXTRA_CA_CERTS NODE_USE_SYSTEM_CA
//	    REQUESTS_CA_BUNDLE CURL_CA_BUNDLE AWS_CA_BUNDLE GIT_SSL_CAINFO DENO_CERT DENO_TLS_CA_STORE
//	    GRPC_DEFAULT_SSL_ROOTS_FILE_PATH CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE HTTPLIB2_CA_CERTS
//	Node:
//	    NPM_CONFIG_CACHE NPM_CONFIG_CAFILE NPM_CONFIG_GLOBALCONFIG NPM_CONFIG_NOPROXY
//	    NPM_CONFIG_OFFLINE NPM_CONFIG_PREFER_OFFLINE NPM_CONFIG_PREFIX NPM_CONFIG_REGISTRY
//	    NPM_CONFIG_STRICT_SSL NPM_CONFIG_USERCONFIG NPM_CONFIG_AUDIT NPM_CONFIG_FUND
//	    NPM_CONFIG_LOGLEVEL NPM_CONFIG_UPDATE_NOTIFIER NPM_CONFIG_YES NVM_BIN NVM_DIR NVM_HOME
//	    NVM_INC NVM_SYMLINK FNM_DIR FNM_MULTISHELL_PATH VOLTA_HOME N_PREFIX COREPACK_HOME
//	    COREPACK_NPM_REGISTRY PNPM_HOME YARN_CACHE_FOLDER YARN_GLOBAL_FOLDER BUN_INSTALL DENO_DIR
//	    DENO_INSTALL_ROOT PLAYWRIGHT_BROWSERS_PATH PUPPETEER_CACHE_DIR PUPPETEER_EXECUTABLE_PATH
//	Python:
//	    UV_CACHE_DIR UV_CONFIG_FILE UV_DEFAULT_INDEX UV_EXTRA_INDEX_URL UV_FIND_LINKS
//	    UV_HTTP_TIMEOUT UV_INDEX UV_INDEX_STRATEGY UV_INDEX_URL UV_INSTALL_DIR UV_LINK_MODE
//	    UV_NATIVE_TLS UV_NO_CACHE UV_NO_CONFIG UV_OFFLINE UV_PYTHON UV_PYTHON_DOWNLOADS
//	    UV_PYTHON_INSTALL_DIR UV_PYTHON_INSTALL_MIRROR UV_PYTHON_PREFERENCE UV_SYSTEM_CERTS
//	    UV_TOOL_BIN_DIR UV_TOOL_DIR PIP_CACHE_DIR PIP_CERT PIP_CONFIG_FILE PIP_DEFAULT_TIMEOUT
//	    PIP_DISABLE_PIP_VERSION_CHECK PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_INDEX_URL
//	    PIP_NO_INDEX PIP_TRUSTED_HOST PIPX_BIN_DIR PIPX_HOME CONDA_DEFAULT_ENV CONDA_PREFIX
//	    PYENV_ROOT PYTHONIOENCODING PYTHONUTF8 VIRTUAL_ENV
//	Go, and others:
//	    GOBIN GOCACHE GOENV GOFLAGS GOINSECURE GOMODCACHE GONOPROXY GONOSUMDB GOPATH GOPRIVATE
//	    GOPROXY GOROOT GOSUMDB GOTOOLCHAIN CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN DOTNET_CLI_HOME
//	    DOTNET_ROOT NUGET_PACKAGES GEM_HOME GEM_PATH JAVA_HOME ASDF_DATA_DIR ASDF_DIR
//	    MISE_CACHE_DIR MISE_CONFIG_DIR MISE_DATA_DIR HOMEBREW_PREFIX NIX_PATH NIX_PROFILES
//	containers:
//	    CONTAINER_HOST DOCKER_CERT_PATH DOCKER_CONFIG DOCKER_CONTEXT DOCKER_HOST DOCKER_TLS_VERIFY
//
// # Concurrency
//
// All methods may be called from any goroutine. A method that takes a context may block, and
// returns soon after the context has ended.
package mcpbridge
