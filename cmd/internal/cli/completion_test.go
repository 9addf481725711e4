package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// grammar has each kind of command, flag and argument that the scripts complete.
type grammar struct {
	Run struct {
		Config string `help:"The file. It may be YAML."`
		Level  string `enum:"low,high" default:"low" help:"The level."`
		Quick  bool   `help:"Be quick."`
		Secret string `hidden:""`
	} `cmd:"" help:"Run it."`
	Group struct {
		First struct {
			Size int `help:"The size."`
		} `cmd:"" default:"withargs" help:"The first. The default."`
		Second struct{} `cmd:"" help:"The second."`
	} `cmd:"" help:"A group."`
	Open       opener     `cmd:"" help:"Open it."`
	Hidden     struct{}   `cmd:"" hidden:""`
	Completion Completion `cmd:"" help:"Print a script."`
}

// opener has an argument that may be any file.
type opener struct {
	File []string `arg:""`
}

func (*opener) Candidates() []string { return []string{"letter", "picture"} }

func TestCandidatesOfTheLastWord(t *testing.T) {
	for words, want := range map[string]string{
		"":                         "run\tRun it|group\tA group|open\tOpen it|completion\tPrint a script",
		"r":                        "run\tRun it",
		"x":                        "",
		"-":                        "",
		"run ":                     "",
		"run -":                    "--config\tThe file|--level\tThe level|--quick\tBe quick",
		"run --c":                  "--config\tThe file",
		"run --config ":            "",
		"run --config --c":         "",
		"run --config x --l":       "--level\tThe level",
		"run --level ":             "low|high",
		"run --level h":            "high",
		"run --level=":             "--level=low|--level=high",
		"run --level=h":            "--level=high",
		"run --level =":            "low|high", // Bash splits words at =
		"run --level = h":          "high",
		"run --level = high --q":   "--quick\tBe quick",
		"run --quick --level ":     "low|high",
		"run --unknown ":           "",
		"run -- ls --":             "",
		"group ":                   "first\tThe first|second\tThe second",
		"group --s":                "--size\tThe size",
		"group second -":           "",
		"open ":                    "letter|picture",
		"open p":                   "picture",
		"open ./p":                 "",
		"open letter ":             "",
		"completion ":              "bash|zsh|fish",
		"completion f":             "fish",
		"hidden":                   "",
		"run --config x --level l": "low",
	} {
		var out bytes.Buffer
		program := &Program{Name: "test", Out: &out}
		args := append([]string{completeCommand}, strings.Split(words, " ")...)
		require.Equal(t, ExitOK, program.Run(&grammar{}, args), words)
		require.Equal(t, want, strings.TrimSuffix(strings.ReplaceAll(out.String(), "\n", "|"), "|"), words)
	}
}
