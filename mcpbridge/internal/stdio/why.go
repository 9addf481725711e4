package stdio

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

var (
	// colors matches the colors of a terminal.
	colors = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

	// reason matches what a line has that says why a program ended.
	reason = regexp.MustCompile(`\b(?:[A-Za-z_.]*(?:Error|Exception|ExceptionGroup|Rejection)|(?i:error|panic|fatal))(?: \[\w+\])?:\s|` +
		`^[A-Za-z_.]+(?:Error|Exception)$|(?i:\blevel"?[=:]"?(?:error|fatal))|^npm (?:error|ERR!) |^thread '.*panicked at|Error response from daemon`)

	// margin matches what Python draws before the lines of a group of exceptions.
	margin = regexp.MustCompile(`(?m)^ +\| `)

	// stack matches lines from which only a programmer learns something: where in the code it happened, and hints how to learn more.
	stack = regexp.MustCompile(`(?m)^(?:` + strings.Join([]string{
		`[ |+]*File ".*", line \d+.*(?:\n(?:[ |]*\|)? {4,}[^ |].*)*`, // Python, with the lines of the source
		`[ |+]*(?:Exception Group )?Traceback \(most recent call last\):`,
		`During handling of the above exception, another exception occurred:|The above exception was the direct cause of .*`,
		`\s+at .*(?::\d|\().*|\s+\.\.\. \d+ .*`,                                           // JavaScript, Java, Rust
		`\s+(?:code|errno|syscall|address|port|path|spawnargs|hostname|requireStack): .*`, // the fields of an error in JavaScript
		`Emitted 'error' event .*|Node\.js v[\d.]+|Bun v.*`,
		`\S.*\n\t\S+\.(?:go|s):\d+.*|goroutine \d+ .*|exit status \d+`, // Go
		`\s+\d+: .*|stack backtrace:|note: .*RUST_BACKTRACE.*`,
		`npm (?:error|ERR!)(?: [\w-]+)?|.*A complete log of this run can be found in:.*`,
		`(?:Run|See) '.* --help'.*`,
		`[\s|+^~{}\-\d]+`,
	}, "|") + `)$`)
)

// why returns what the output of a program says of its end: the line that says why and what follows it, without the stack, or else
// the end of the output. The text is one line of about limit bytes at most.
func why(output string, limit int) string {
	output = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(output)
	lines := strings.Split(margin.ReplaceAllString(stack.ReplaceAllString(output, ""), ""), "\n")
	last := len(lines) - 1
	for last >= 0 && !reason.MatchString(lines[last]) {
		last--
	}
	if last < 0 {
		return end(cmp.Or(oneLine(lines...), oneLine(output)), limit)
	}
	for _, from := range []int{slices.IndexFunc(lines, reason.MatchString), last} {
		if text := oneLine(lines[from:]...); len(text) <= limit {
			return text
		}
	}
	line := lines[last]
	if len(line) > limit/2 {
		line = line[reason.FindStringIndex(line)[0]:]
		line = strings.ToValidUTF8(line[:min(len(line), limit/2)], "")
	}
	line = oneLine(line)
	details := slices.DeleteFunc(lines[last+1:], func(l string) bool { return strings.TrimLeft(l, " \t") != l })
	return line + " " + end(oneLine(details...), limit-len(line)-len(" "))
}

// oneLine joins lines, and leaves one space between words.
func oneLine(lines ...string) string {
	return strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
}

// end returns the end of a text, from the beginning of a word if that is near.
func end(text string, limit int) string {
	over := len(text) - limit
	if over <= 0 {
		return text
	}
	if word := strings.IndexByte(text[over-1:], ' '); word >= 0 && word < limit/2 {
		over += word
	}
	return "…" + strings.ToValidUTF8(text[over:], "")
}
