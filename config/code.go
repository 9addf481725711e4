package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// always is for programs that take any argument as code, or hand it to a shell.
const always = "*"

// runners are the programs that run code, or a program, that an argument names: with the
// letters of their short options that take code. A program that is started by another one,
// such as docker or sudo, is found among the arguments of that.
var runners = map[string]string{
	"sh": "c", "bash": "c", "dash": "c", "ash": "c", "zsh": "c", "ksh": "c", "mksh": "c", "fish": "c", "csh": "c", "tcsh": "c", "busybox": "c",
	"nu": "c", "elvish": "c", "xonsh": "c", "su": "c", "runuser": "c", "script": "c", "flock": "c", "expect": "c",
	"cmd": always, "powershell": always, "pwsh": always, "wsl": always, "ssh": always, "eval": always, "make": always, "watch": always, "parallel": always,
	"node": "ep", "nodejs": "ep", "tsx": "ep", "ts-node": "ep", "bun": "ep", "deno": "",
	"python": "c", "pythonw": "c", "py": "c", "pypy": "c", "ipython": "c", "perl": "eE", "ruby": "e", "php": "rBRE", "lua": "e", "luajit": "e",
	"r": "e", "rscript": "e", "julia": "eE", "elixir": "e", "groovy": "e", "osascript": "e", "tclsh": "", "awk": "e", "gawk": "e", "sed": "e",
	"npx": "c", "npm": "c", "pnpm": "c", "pnpx": "c", "yarn": "c", "bunx": "", "uv": "", "uvx": "", "pipx": "", "nix": "c", "nix-shell": "",
	"env": "S", "sudo": "", "doas": "", "nice": "", "nohup": "", "timeout": "", "xargs": "", "setsid": "", "stdbuf": "",
}

// codeOptions are the long options that take code. Many programs accept their beginnings.
var codeOptions = []string{"call", "code", "command", "eval", "exec", "execute", "print", "run", "split-string"}

var (
	// isShort matches short options, of which several may stand together.
	isShort = regexp.MustCompile(`^[-+][A-Za-z]+`)
	// isScript matches the options before which no program has anything but code, or a program.
	isScript = regexp.MustCompile(`(?i)^(-[a-z]*c|--command|/c|/k)$`)
	// isOperand matches the name of a program, package or script. Numbers and durations, as those of
	// timeout, and assignments, as those of env, are none.
	isOperand = regexp.MustCompile(`^[^-+=][^=]*[A-Za-z][^=]*$`)
	// isPlain matches what may stand in an argument beside the scope. In a language, such as that of
	// a shell, JSON or SQL, the scope would have to be escaped.
	isPlain = regexp.MustCompile(`^[\pL\pN_./\\:=@,+~-]*$`)
)

// checkArguments returns the index of the first argument in which the scope may not be, and
// why; or no error.
func (t template) checkArguments() (int, error) {
	words := append([]string{t.server.Command}, t.server.Args...)
	for i, arg := range t.server.Args {
		if !strings.Contains(arg, scopeMark) {
			continue
		}
		before, plain := words[:i+1], strings.ReplaceAll(arg, scopeMark, "")
		for at, word := range before {
			name := programOf(word)
			letters, known := runners[name]
			given := before[at+1:]
			switch {
			case !known:
			case letters == always, slices.ContainsFunc(append(slices.Clone(given), plain), func(arg string) bool { return takesCode(arg, letters) }):
				return i, fmt.Errorf("%s would run the scope as code: put ${scope} into env, and use the variable in quotes", name)
			case !slices.ContainsFunc(given, func(arg string) bool { return isOperand.MatchString(arg) && !strings.Contains(arg, scopeMark) }):
				return i, fmt.Errorf("the scope would name what %s runs: name that first, or put ${scope} into env", name)
			}
		}
		switch {
		case isScript.MatchString(before[i]):
			return i, fmt.Errorf("the program would run the scope as code after %s: put ${scope} into env, and use the variable in quotes", before[i])
		case !isPlain.MatchString(plain):
			return i, fmt.Errorf("beside ${scope} an argument may have letters, digits and . _ - / \\ : = @ , + ~ only, because the scope is not escaped: give it an argument of its own, or put it into env")
		}
	}
	return 0, nil
}

// programOf returns the name of a program without its directory, its version and what Windows
// appends to it.
func programOf(word string) string {
	name := strings.ToLower(word[strings.LastIndexAny(word, separators)+1:])
	for _, suffix := range []string{".exe", ".cmd", ".bat", ".com", ".ps1"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return strings.TrimRight(name, "0123456789.-")
}

// takesCode reports whether an argument is an option of a runner that takes code, perhaps together
// with others, shortened, or with its value. letters are those of its short options.
func takesCode(arg, letters string) bool {
	long, isLong := strings.CutPrefix(arg, "--")
	long, _, _ = strings.Cut(long, "=")
	switch {
	case arg == "eval":
		return true
	case isLong:
		return long != "" && slices.ContainsFunc(codeOptions, func(option string) bool { return strings.HasPrefix(option, long) })
	}
	return strings.ContainsAny(isShort.FindString(arg), letters)
}
