package cli

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// commandTag is the tag of an argument for any number of words, after which the command of a server may stand: --, and its words.
const commandTag = "command"

// arrange puts the flags after the words of such an argument, between which kong takes no flags, and takes off what follows "--". It
// changes nothing for commands without such an argument.
func arrange(root *kong.Node, args []string) (arranged, after []string) {
	node, at := root, 0
	for ; at < len(args); at++ {
		i := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == args[at] })
		if i < 0 {
			break
		}
		node = node.Children[i]
	}
	if !slices.ContainsFunc(node.Positional, func(p *kong.Positional) bool { return p.Tag.Has(commandTag) }) {
		return args, nil
	}
	given, words, flags := args[at:], slices.Clone(args[:at]), []string{}
	if end := slices.Index(given, "--"); end >= 0 {
		given, after = given[:end], append([]string{}, given[end+1:]...) // not nil, though it may be empty
	}
	for i := 0; i < len(given); i++ {
		name, isFlag := strings.CutPrefix(given[i], "-")
		if !isFlag || name == "" {
			words = append(words, given[i])
			continue
		}
		flags = append(flags, given[i])
		if i+1 < len(given) && flagWithValue(node, strings.TrimPrefix(name, "-")) != nil {
			i++
			flags = append(flags, given[i])
		}
	}
	return append(words, flags...), after
}
