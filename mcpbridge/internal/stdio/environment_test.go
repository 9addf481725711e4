package stdio

import (
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// H-E5: a stdio server gets the variables on the lists and those in Env, and no others.
func TestServersInheritWhatIsOnTheListsOnly(t *testing.T) {
	for variable, want := range map[string]bool{
		"PATH=/bin": true, "HOME=/root": runtime.GOOS != "windows", "LC_ALL=C.UTF-8": true, "LC_PAPER=de_DE": true, "TMPDIR=/tmp": true,
		"HTTPS_PROXY=http://proxy:3128": true, "https_proxy=http://user:password@proxy:3128": true, "no_proxy=localhost": true,
		"NODE_EXTRA_CA_CERTS=/ca.pem": true, "npm_config_registry=https://npm.example.com/": true, "NPM_CONFIG_CACHE=/c": true,
		"GOPROXY=https://proxy.example.com,direct": true, "GOFLAGS=-mod=mod": true, "DOCKER_HOST=ssh://user@host": true,
		"UV_CACHE_DIR=": true, "PIP_INDEX_URL=https://pypi.example.com/simple": true,

		"AWS_SECRET_ACCESS_KEY=x": false, "OPENAI_API_KEY=x": false, "GITHUB_TOKEN=x": false, "NPM_TOKEN=x": false,
		"npm_config__authtoken=x": false, "npm_config_//npm.example.com/:_authToken=x": false, "NVM_AUTH_HEADER=x": false,
		"UV_PUBLISH_TOKEN=x": false, "UV_INDEX_CORP_PASSWORD=x": false, "COREPACK_NPM_TOKEN=x": false, "SSH_AUTH_SOCK=/s": false,
		"NODE_OPTIONS=--require=/x.js": false, "LD_PRELOAD=/x.so": false, "PYTHONPATH=/x": false, "PWD=/": false, "LC=x": false,
		"PIP_INDEX_URL=https://user:password@pypi.example.com/simple": false, "UV_INDEX_URL=https://token@pypi.example.com": false,
		"npm_config_registry=https://user:pass/word@npm.example.com/": false, "GOPROXY=https://a.example.com,https://user:x@b.example.com": false,
		"TERM=() { :; }": false, "HTTP_PROXY=() { :; }": false, "BASH_FUNC_ls%%=() { :; }": false, "": false, "=C:=C:\\": false,
	} {
		require.Equal(t, want, inherits(variable), variable)
	}
	own := []string{"PATH=/bin", "SECRET=x"}
	require.Equal(t, []string{"PATH=/bin", "SECRET=y"}, environment(&mcpbridge.Server{Env: map[string]string{"SECRET": "y"}}, own))
	require.Equal(t, []string{"PATH=/bin", "SECRET=x", "A=b"}, environment(&mcpbridge.Server{Env: map[string]string{"A": "b"}, InheritEnv: true}, own))
	require.Empty(t, environment(&mcpbridge.Server{}, nil))
}

// The lists of the two SDKs are the least that servers were written for.
func TestServersInheritWhatTheSDKsPassOn(t *testing.T) {
	for system, names := range map[string]string{
		"linux":  "HOME LOGNAME PATH SHELL TERM USER",
		"darwin": "HOME LOGNAME PATH SHELL TERM USER",
		"windows": "APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE PROGRAMFILES SYSTEMDRIVE " +
			"SYSTEMROOT TEMP USERNAME USERPROFILE",
	} {
		for name := range strings.FieldsSeq(names) {
			require.Contains(t, inheritedOn(system), name, system)
		}
	}
}

func TestInheritedVariablesAreInTheDocs(t *testing.T) {
	docs, err := os.ReadFile("../../doc.go")
	require.NoError(t, err)
	for _, system := range []string{"linux", "windows"} {
		for name := range inheritedOn(system) {
			require.Regexp(t, `\s`+regexp.QuoteMeta(name)+`\s`, string(docs))
		}
	}
}
