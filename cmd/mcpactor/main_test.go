package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
)

// programVar makes the test binary the program.
const programVar = "MCPACTOR_TEST_PROGRAM"

func TestMain(m *testing.M) {
	servertest.WithoutLogins()
	if os.Getenv(programVar) != "" {
		main()
	}
	os.Exit(m.Run())
}

// run runs the program, and returns its exit status and its output.
func run(args ...string) (status int, stdout, stderr string) {
	var out, log bytes.Buffer
	program := newProgram()
	program.In, program.Out, program.Err = &bytes.Buffer{}, &out, &log
	status = program.Run(&subcommands{}, args)
	return status, out.String(), log.String()
}

// requireFitsAScreen checks that a text has at most 24 lines of 80 columns.
func requireFitsAScreen(t *testing.T, text string) {
	t.Helper()
	require.LessOrEqual(t, strings.Count(text, "\n"), 24, text)
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, text)
	}
}

func TestHelpFitsAScreenAndThatOfACommandExplainsEveryFlag(t *testing.T) {
	status, stdout, _ := run("--help")
	require.Equal(t, cli.ExitOK, status)
	requireFitsAScreen(t, stdout)
	for command, flags := range map[string][]string{
		"exec":   {"--config", "--parallel", "--log-level", "--stop-timeout", "--events"},
		"tools":  {"--config", "--scope", "--json", "--size", "--timeout"},
		"serve":  {"--config", "--listen", "--share", "--header", "--token", "--no-cache", "--find"},
		"call":   {"--config", "--scope", "--json", "--timeout"},
		"doctor": {"--config", "--timeout"},
		"adopt":  {"--undo", "--dry-run"},
		"login":  {"--config", "--client-id", "--client-secret", "--client-document", "--redirect", "--scope", "--timeout"},
		"logout": {"--config"},
		"pin":    {"--config", "--accept", "--no-new", "--scope", "--json", "--timeout"},

		"version": {}, "completion": {},
	} {
		require.Regexp(t, `(?m)^ +`+command+` .*[a-z]`, stdout)
		status, its, _ := run(command, "--help")
		require.Equal(t, cli.ExitOK, status)
		requireFitsAScreen(t, its)
		for _, flag := range flags {
			require.Regexp(t, `(?m)^ +`+flag+`[= ].*[a-z]`, its)
		}
	}
	_, its, _ := run("serve", "--help")
	for _, further := range []string{"--find-calls", "--stability", "--allow", "--deny", "--read-only", "--pin", "--tls-*", "--allow-host", "--allow-origin", "--client-header"} {
		require.Contains(t, its, further)
	}
}

// The words that people try first.
func TestHelpIsFoundWithoutItsFlag(t *testing.T) {
	_, list, _ := run("--help")
	status, stdout, stderr := run()
	require.Equal(t, cli.ExitUsage, status)
	require.Empty(t, stdout)
	require.Equal(t, list, stderr)

	status, stdout, _ = run("help")
	require.Equal(t, cli.ExitOK, status)
	require.Equal(t, list, stdout)

	_, its, _ := run("serve", "--help")
	status, stdout, _ = run("help", "serve")
	require.Equal(t, cli.ExitOK, status)
	require.Equal(t, its, stdout)
}

func TestVersionIsPrinted(t *testing.T) {
	for _, word := range []string{"version", "--version"} {
		status, stdout, stderr := run(word)
		require.Equal(t, cli.ExitOK, status, stderr)
		require.Regexp(t, `^mcpactor \S+ \(.*go1\.`, stdout)
	}
}

func TestInvalidUsageExitsWithTwo(t *testing.T) {
	for want, args := range map[string][]string{
		"unknown flag --nonsense":             {"exec", "--nonsense"},
		"or --config FILE":                    {"tools"},
		`<shell> must be one of "bash"`:       {"completion", "tcsh"},
		`"search" is no URL`:                  {"login", "search"},
		`"nonsense" is not of this form`:      {"login", "https://a.example", "--redirect", "nonsense"},
		`"a.json" is not of this form: https`: {"login", "https://a.example", "--client-document", "a.json"},
		`"http://0.0.0.0:1/x" is not of this`: {"login", "https://a.example", "--redirect", "http://0.0.0.0:1/x"},
		`Run "mcpactor --help" for the usage`: {"nonsense"},
		`Run "mcpactor serve --help" for the`: {"serve", "--quiet", "soon"},
		`must be one of "append","freeze","`:  {"serve", "--stability", "soon", "--", "npx"},
		`--allow: "[" is not a valid pattern`: {"serve", "--allow", "read,[", "--", "npx"},
		`--deny: "" has no name of a tool`:    {"serve", "--deny=", "--", "npx"},
	} {
		status, stdout, stderr := run(args...)
		require.Equal(t, cli.ExitUsage, status, want)
		require.Contains(t, stderr, want)
		require.Empty(t, stdout, want)
	}
}

// go install refuses a module with these directives.
func TestModuleHasNoDirectivesThatPreventInstallation(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	require.NotRegexp(t, regexp.MustCompile(`(?m)^(replace|exclude)\b`), string(mod))
}

// quoted returns words as a shell reads them.
func quoted(words []string) string { return "'" + strings.Join(words, "' '") + "'" }

// The scripts run in the real shells. Only the part that draws the candidates is replaced, in
// Zsh, which draws nothing without a terminal.
func TestScriptsCompleteInTheirShells(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	program := filepath.Join(dir, "mcpactor")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"+programVar+"=1 exec '"+self+"' \"$@\"\n"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "servers.json"), nil, 0o600))

	shells := map[string]func(words []string) string{
		"bash": func(words []string) string {
			return `complete() { bound="$*"; }
				eval "$(mcpactor completion bash)"
				[ "$bound" = "-o default -F _mcpactor mcpactor" ] || echo "bound: $bound"
				COMP_WORDS=(` + quoted(words) + `) COMP_CWORD=` + strconv.Itoa(len(words)-1) + `
				_mcpactor; printf '%s\n' "${COMPREPLY[@]}"`
		},
		"zsh": func(words []string) string {
			return `compdef() { bound="$*" }
				_describe() { print -l -- "${(@)${(P)2}%%:*}" }
				_files() { print files }
				eval "$(mcpactor completion zsh)"
				[[ $bound = "_mcpactor mcpactor" ]] || echo "bound: $bound"
				words=(` + quoted(words) + `) CURRENT=` + strconv.Itoa(len(words)) + `
				_mcpactor`
		},
		"fish": func(words []string) string {
			return "mcpactor completion fish | source; complete -C '" + strings.Join(words, " ") + "' | string replace -r '\\t.*' ''; true"
		},
	}
	for shell, script := range shells {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip(shell + " is not installed")
			}
			for _, c := range []struct {
				words []string
				want  []string
				files bool // the shell completes file names
			}{
				{[]string{"mcpactor", ""}, []string{"adopt", "call", "completion", "doctor", "exec", "login", "logout", "pin", "serve", "tools", "version"}, false},
				{[]string{"mcpactor", "tools", "--s"}, []string{"--scope", "--size"}, false},
				{[]string{"mcpactor", "exec", "--log-level", ""}, []string{"debug", "error", "info", "warn"}, false},
				{[]string{"mcpactor", "exec", "--config", "serv"}, nil, true},
			} {
				cmd := exec.Command(shell, "-c", script(c.words))
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+dir, "GORACE=atexit_sleep_ms=0")
				output, err := cmd.CombinedOutput()
				require.NoError(t, err, string(output))
				got := strings.Fields(string(output))
				if c.files {
					want := map[string][]string{"bash": {}, "zsh": {"files"}, "fish": {"servers.json"}}[shell]
					require.Equal(t, want, got, c.words)
					continue
				}
				require.ElementsMatch(t, c.want, got, c.words)
			}
		})
	}
}
