package cli

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

func TestFlagsMayStandBetweenWordsAndACommandAfterThem(t *testing.T) {
	var commands struct {
		Call struct {
			Words  []string `arg:"" optional:"" command:""`
			Config string   `short:"c"`
			Quick  bool     `short:"q"`
		} `cmd:""`
		Serve struct {
			Words []string `arg:"" optional:"" passthrough:""`
			Quick bool
		} `cmd:""`
		Many struct {
			Words []string `arg:"" optional:""`
		} `cmd:""`
		One struct {
			Word string `arg:"" optional:""`
		} `cmd:""`
	}
	parser, err := kong.New(&commands)
	require.NoError(t, err)
	for line, want := range map[string]string{
		"call a b":                              "call a b",
		"call a --quick b --config c d":         "call a b d --quick --config c",
		"call a --config=c b":                   "call a b --config=c",
		"call - -q":                             "call - -q",
		"call a --config":                       "call a --config",
		"call --unknown a":                      "call a --unknown",
		"call a --quick b -- npx --config -- x": "call a b --quick | npx --config -- x",
		"call --":                               "call |",
		"call -- npx":                           "call | npx",
		"serve --quick npx -- --quick":          "serve --quick npx -- --quick",
		"many a -- b":                           "many a -- b",
		"one -- a":                              "one -- a",
		"unknown -- a":                          "unknown -- a",
		"":                                      "",
	} {
		args, after := arrange(parser.Model.Node, strings.Fields(line))
		if after != nil {
			args = append(append(args, "|"), after...)
		}
		require.Equal(t, want, strings.Join(args, " "), line)
	}
}
