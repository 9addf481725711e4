package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Completion is the command that prints a completion script for a shell.
type Completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell that runs the script: bash, zsh or fish."`
}

// Help explains how to load the scripts.
func (*Completion) Help() string {
	return `Load the script in the startup file of the shell:

  eval "$(mcpactor completion bash)"    # ~/.bashrc
  eval "$(mcpactor completion zsh)"     # ~/.zshrc, after compinit
  mcpactor completion fish | source     # ~/.config/fish/config.fish`
}

// Run prints the script.
func (c *Completion) Run(p *Program) error {
	_, err := strings.NewReplacer("NAME", p.Name, "COMPLETE", completeCommand).WriteString(p.Out, scripts[c.Shell])
	return err
}

// completeCommand is the argument with which the scripts call the program. The words of
// the command line up to the cursor follow it, without the name of the program.
const completeCommand = "__complete"

// scripts are the completion scripts. Each shows the lines that the program prints, and
// file names if there is none.
var scripts = map[string]string{
	"bash": `_NAME() {
	local line
	COMPREPLY=()
	while IFS= read -r line; do
		COMPREPLY+=("${line%%$'\t'*}")
	done < <("${COMP_WORDS[0]}" COMPLETE "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _NAME NAME
`,
	"zsh": `#compdef NAME
_NAME() {
	local -a candidates
	candidates=("${(@f)$("${words[1]}" COMPLETE "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -z "$candidates" ]]; then
		_files
	else
		candidates=("${candidates[@]//$'\t'/:}")
		_describe NAME candidates
	fi
}
if [[ "$funcstack[1]" = _NAME ]]; then # loaded from a folder of fpath
	_NAME
else
	compdef _NAME NAME
fi
`,
	"fish": `function __NAME
	set -l candidates (NAME COMPLETE (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
	if test -n "$candidates"
		printf '%s\n' $candidates
	else
		__fish_complete_path (commandline -ct)
	end
end
complete -c NAME -f -a '(__NAME)'
`,
}

// complete prints the candidates for the last word, a line each: the word, and after a tab
// its description if there is one.
func complete(out io.Writer, root *kong.Node, words []string) {
	for _, c := range candidates(root, words) {
		if c.help == "" {
			fmt.Fprintln(out, c.word)
			continue
		}
		summary, _, _ := strings.Cut(c.help, ". ")
		fmt.Fprintf(out, "%s\t%s\n", c.word, strings.TrimSuffix(summary, "."))
	}
}

// candidate is a word that may stand at the cursor.
type candidate struct{ word, help string }

// candidates returns the commands, flags or values with which the last word may go on. A command whose first argument may have other
// values as well offers some with a method Candidates.
func candidates(root *kong.Node, words []string) (all []candidate) {
	node, flag, given := root, (*kong.Flag)(nil), 0 // the command, the flag whose value is next, and how many arguments there are
	last := words[len(words)-1]
	for _, word := range words[:len(words)-1] {
		name, isFlag := strings.CutPrefix(word, "--")
		switch {
		case word == "--":
			return nil // what follows is of another program
		case word == "=": // Bash makes three words of --flag=value
		case flag != nil:
			flag = nil
		case isFlag:
			flag = flagWithValue(node, name)
		default:
			if i := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == word }); i >= 0 {
				node = node.Children[i]
			} else {
				given++
			}
		}
	}
	add := func(word, help string) {
		if strings.HasPrefix(word, last) {
			all = append(all, candidate{word, help})
		}
	}
	prefix := ""
	if last == "=" {
		last = ""
	} else if name, _, given := strings.Cut(last, "="); given && strings.HasPrefix(name, "--") {
		flag, prefix = flagWithValue(node, name[2:]), name+"="
	}
	switch {
	case flag != nil:
		for _, value := range enum(flag.Value) {
			add(prefix+value, "")
		}
	case strings.HasPrefix(last, "-"):
		for _, flag := range flags(node, true) {
			add("--"+flag.Name, flag.Help)
		}
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				add(child.Name, child.Help)
			}
		}
		for _, argument := range node.Positional {
			for _, value := range enum(argument) {
				add(value, "")
			}
		}
		if offers, ok := node.Target.Addr().Interface().(interface{ Candidates() []string }); ok && given == 0 {
			for _, value := range offers.Candidates() {
				add(value, "")
			}
		}
	}
	return all
}

// flags returns the flags that a command takes, those of its default command included. Hidden flags may be left out.
func flags(node *kong.Node, leaveOut bool) (all []*kong.Flag) {
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	for _, group := range node.AllFlags(leaveOut) {
		all = append(all, group...)
	}
	return all
}

// flagWithValue returns the flag with a name if its value is another word, else nil.
func flagWithValue(node *kong.Node, name string) *kong.Flag {
	for _, flag := range flags(node, false) {
		if flag.Name == name && !flag.IsBool() {
			return flag
		}
	}
	return nil
}

// enum returns the values that a flag or an argument allows, or none if it allows any.
func enum(value *kong.Value) []string {
	if value.Enum == "" {
		return nil
	}
	return value.EnumSlice()
}
