package stdio

import (
	"regexp"
	"runtime"
	"strings"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// The variables of this process that a stdio server gets: those that the
// TypeScript and the Python SDK pass on, and those that are needed to start a server with a
// package manager and to reach the network. None of them is meant for a secret. Names
// are compared without regard to case, as Windows does, and npm does with its own variables.
const (
	inheritedUnix    = `HOME LOGNAME PATH SHELL TERM USER`
	inheritedWindows = `
		APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE PROGRAMFILES SYSTEMDRIVE SYSTEMROOT
		TEMP USERNAME USERPROFILE
		ALLUSERSPROFILE COMMONPROGRAMFILES COMMONPROGRAMFILES(X86) COMMONPROGRAMW6432 COMPUTERNAME COMSPEC
		NUMBER_OF_PROCESSORS OS PROGRAMDATA PROGRAMFILES(X86) PROGRAMW6432 PSMODULEPATH PUBLIC USERDOMAIN WINDIR`
	inheritedEverywhere = `
		LANG LANGUAGE TZ TZDIR
		TMPDIR TMP TEMP
		COLORTERM NO_COLOR
		DISPLAY WAYLAND_DISPLAY XAUTHORITY DBUS_SESSION_BUS_ADDRESS XDG_CACHE_HOME XDG_CONFIG_DIRS XDG_CONFIG_HOME
		XDG_CURRENT_DESKTOP XDG_DATA_DIRS XDG_DATA_HOME XDG_RUNTIME_DIR XDG_SESSION_TYPE XDG_STATE_HOME

		NO_PROXY NODE_USE_ENV_PROXY
		SSL_CERT_FILE SSL_CERT_DIR NIX_SSL_CERT_FILE NODE_EXTRA_CA_CERTS NODE_USE_SYSTEM_CA REQUESTS_CA_BUNDLE
		CURL_CA_BUNDLE AWS_CA_BUNDLE GIT_SSL_CAINFO DENO_CERT DENO_TLS_CA_STORE GRPC_DEFAULT_SSL_ROOTS_FILE_PATH
		CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE HTTPLIB2_CA_CERTS

		NPM_CONFIG_CACHE NPM_CONFIG_CAFILE NPM_CONFIG_GLOBALCONFIG NPM_CONFIG_NOPROXY NPM_CONFIG_OFFLINE
		NPM_CONFIG_PREFER_OFFLINE NPM_CONFIG_PREFIX NPM_CONFIG_REGISTRY NPM_CONFIG_STRICT_SSL NPM_CONFIG_USERCONFIG
		NPM_CONFIG_AUDIT NPM_CONFIG_FUND NPM_CONFIG_LOGLEVEL NPM_CONFIG_UPDATE_NOTIFIER NPM_CONFIG_YES
		NVM_BIN NVM_DIR NVM_HOME NVM_INC NVM_SYMLINK FNM_DIR FNM_MULTISHELL_PATH VOLTA_HOME N_PREFIX
		COREPACK_HOME COREPACK_NPM_REGISTRY PNPM_HOME YARN_CACHE_FOLDER YARN_GLOBAL_FOLDER BUN_INSTALL DENO_DIR
		DENO_INSTALL_ROOT PLAYWRIGHT_BROWSERS_PATH PUPPETEER_CACHE_DIR PUPPETEER_EXECUTABLE_PATH

		UV_CACHE_DIR UV_CONFIG_FILE UV_DEFAULT_INDEX UV_EXTRA_INDEX_URL UV_FIND_LINKS UV_HTTP_TIMEOUT UV_INDEX
		UV_INDEX_STRATEGY UV_INDEX_URL UV_INSTALL_DIR UV_LINK_MODE UV_NATIVE_TLS UV_NO_CACHE UV_NO_CONFIG UV_OFFLINE
		UV_PYTHON UV_PYTHON_DOWNLOADS UV_PYTHON_INSTALL_DIR UV_PYTHON_INSTALL_MIRROR UV_PYTHON_PREFERENCE
		UV_SYSTEM_CERTS UV_TOOL_BIN_DIR UV_TOOL_DIR
		PIP_CACHE_DIR PIP_CERT PIP_CONFIG_FILE PIP_DEFAULT_TIMEOUT PIP_DISABLE_PIP_VERSION_CHECK PIP_EXTRA_INDEX_URL PIP_FIND_LINKS
		PIP_INDEX_URL PIP_NO_INDEX PIP_TRUSTED_HOST PIPX_BIN_DIR PIPX_HOME
		CONDA_DEFAULT_ENV CONDA_PREFIX PYENV_ROOT PYTHONIOENCODING PYTHONUTF8 VIRTUAL_ENV

		GOBIN GOCACHE GOENV GOFLAGS GOINSECURE GOMODCACHE GONOPROXY GONOSUMDB GOPATH GOPRIVATE GOPROXY GOROOT
		GOSUMDB GOTOOLCHAIN
		CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN DOTNET_CLI_HOME DOTNET_ROOT NUGET_PACKAGES GEM_HOME GEM_PATH
		JAVA_HOME ASDF_DATA_DIR ASDF_DIR MISE_CACHE_DIR MISE_CONFIG_DIR MISE_DATA_DIR
		HOMEBREW_PREFIX NIX_PATH NIX_PROFILES
		CONTAINER_HOST DOCKER_CERT_PATH DOCKER_CONFIG DOCKER_CONTEXT DOCKER_HOST DOCKER_TLS_VERIFY`
	// inheritedProxies may contain a login, without which some proxies refuse requests.
	inheritedProxies = `HTTP_PROXY HTTPS_PROXY ALL_PROXY NPM_CONFIG_PROXY NPM_CONFIG_HTTPS_PROXY PIP_PROXY`
)

// login finds an address with a user or a password, either of which may be a token.
var login = regexp.MustCompile(`(?i)https?://[^,\s]*@`)

// inherited are the names of these variables, in capitals. The value is true for proxies.
var inherited = inheritedOn(runtime.GOOS)

func inheritedOn(system string) map[string]bool {
	lists := inheritedEverywhere + " " + inheritedUnix
	if system == "windows" {
		lists = inheritedEverywhere + " " + inheritedWindows
	}
	names := map[string]bool{}
	for name := range strings.FieldsSeq(lists) {
		names[name] = false
	}
	for name := range strings.FieldsSeq(inheritedProxies) {
		names[name] = true
	}
	return names
}

// environment returns the environment of a stdio server. own is the environment of this process. Without
// [mcpbridge.Server.InheritEnv] it leaves out variables that are not on the lists, values with a login in
// a URL, except for proxies, and the functions that some shells export.
func environment(s *mcpbridge.Server, own []string) []string {
	var env []string
	for _, variable := range own {
		if s.InheritEnv || inherits(variable) {
			env = append(env, variable)
		}
	}
	for name, value := range s.Env {
		env = append(env, name+"="+value)
	}
	return env
}

func inherits(variable string) bool {
	name, value, _ := strings.Cut(variable, "=")
	name = strings.ToUpper(name)
	proxy, listed := inherited[name]
	listed = listed || strings.HasPrefix(name, "LC_")
	return listed && !strings.HasPrefix(value, "()") && (proxy || !login.MatchString(value))
}
