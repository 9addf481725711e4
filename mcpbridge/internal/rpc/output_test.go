package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/wellformed"
)

const (
	answer5 = `{"jsonrpc":"2.0","id":5,"result":{"text":"a\nb}{"}}`
	answer6 = `{"jsonrpc":"2.0","id":6,"error":{"code":1,"message":"[\""}}`
	asks    = `{"jsonrpc":"2.0","id":"x","method":"ping"}`
	tells   = `{"jsonrpc":"2.0","method":"notifications/message","params":{"a":[1,-2.5e3,true,false,null,[],{}]}}`
)

// indented returns JSON over several lines.
func indented(data string) string {
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(data), "", "  "); err != nil {
		panic(err)
	}
	return out.String()
}

// outputs are what servers write, and what is found in it.
var outputs = map[string]struct {
	in   string
	want []string
	cut  bool
}{
	"nothing":                 {},
	"lines":                   {in: answer5 + "\n" + asks + "\r\n" + tells + "\n", want: []string{"message 5", "message x", "message"}},
	"empty lines":             {in: "\n\r\n" + answer5 + "\n \t\n" + tells + "\n\n", want: []string{"message 5", "message"}},
	"no end of the last line": {in: tells + "\n" + answer5, want: []string{"message", "message 5"}},
	"no ends of lines":        {in: tells + answer5 + " " + asks, want: []string{"message", "message 5", "message x"}},
	"byte order marks":        {in: "\ufeff" + answer5 + "\n\ufeff " + answer6 + "\n\ufeff", want: []string{"message 5", "message 6"}},
	"half a byte order mark":  {in: "\xef\xbb", want: []string{"text"}},
	"several lines each":      {in: indented(answer5) + "\n" + indented(asks) + "\r\n" + indented(answer6) + indented(tells), want: []string{"message 5", "message x", "message 6", "message"}},
	"array of one":            {in: "[" + answer5 + "]\n", want: []string{"message 5"}},
	"array":                   {in: indented("["+asks+","+answer5+"]") + "[" + answer6 + "]", want: []string{"message x", "message 5", "message 6"}},
	"array of other things":   {in: "[" + answer5 + `,{"a":1}]` + "\n[]\n[1,2]\n", want: []string{"text", "text", "text"}},
	"array that breaks off":   {in: "[\n" + answer5 + "\n", want: []string{"text", "message 5"}},

	"text":                       {in: "> start\nlistening on port 80\n" + answer5 + "\n", want: []string{"text", "text", "message 5"}},
	"text after a message":       {in: answer5 + " done\n" + answer6 + "\n", want: []string{"message 5", "text", "message 6"}},
	"text in brackets":           {in: "[info] up\n{not: json}\n{}\n[1] 4711\n" + answer5 + "\n", want: []string{"text", "text", "text", "text", "text", "message 5"}},
	"JSON of a logger":           {in: `{"level":"info","id":5,"msg":"\"jsonrpc\""}` + "\n" + answer5 + "\n", want: []string{"text", "message 5"}},
	"JSON with a copy":           {in: `{"sent":` + answer5 + "}\n" + indented(`{"id":6,"sent":`+answer6+`}`) + "\n", want: []string{"text", "text"}},
	"an object that was printed": {in: "{\n  a: 1,\n  b: { c: 'x' }\n}\n" + indented(answer5) + "\n", want: []string{"text", "text", "text", "text", "message 5"}},
	"a lone bracket":             {in: "{\n" + answer5 + "\n[\n" + asks + "\n", want: []string{"text", "message 5", "text", "message x"}},
	"a lone bracket, then lines": {in: "{\n" + indented(answer5) + "\n", want: []string{"text", "message 5"}},
	"no version":                 {in: `{"id":5,"result":{}}` + "\n", want: []string{"text"}},

	"response within text":       {in: "got " + answer5 + " \r\n", want: []string{"text", "response 5"}},
	"prompts":                    {in: "> " + answer5 + "\n>> " + answer6, want: []string{"text", "response 5", "text", "response 6"}},
	"response after JSON":        {in: `{"level":"info"} ` + answer5 + "\n", want: []string{"text", "text", "response 5"}},
	"response, then text":        {in: "got " + answer5 + ".\n", want: []string{"text"}},
	"request within text":        {in: "got " + asks + "\nsent " + tells + "\n", want: []string{"text", "text"}},
	"responses within text":      {in: "got " + answer5 + answer6 + "\n", want: []string{"text", "response 6"}},
	"response in JSON in text":   {in: `got {"a":` + answer5 + "}\n", want: []string{"text"}},
	"text with many brackets":    {in: strings.Repeat("{", maxTried) + answer5 + "\n", want: []string{"text"}},
	"text with several brackets": {in: "x" + strings.Repeat("{[", maxTried-1) + answer5 + "\n", want: []string{"text", "response 5"}},

	"torn by a line":         {in: answer5[:40] + "\nINFO hello\n" + answer5[40:] + "\n" + answer6 + "\n", want: []string{"torn 5", "text", "text", "message 6"}},
	"torn by text":           {in: answer5[:24] + "INFO hello" + answer5[24:] + "\n" + answer6 + "\n", want: []string{"torn 5", "message 6"}},
	"torn by a message":      {in: answer5[:30] + asks + "\n" + answer5[30:] + "\n", want: []string{"torn 5", "text"}},
	"torn before its id":     {in: answer5[:20] + "\n" + answer6 + "\n", want: []string{"torn", "message 6"}},
	"torn with a later id":   {in: `{"jsonrpc":"2.0","result":{"id":6,"a":INFO},"id":5}` + "\n", want: []string{"torn 5"}},
	"torn with a text as id": {in: `{"jsonrpc":"2.0","id":"a\"b","result":` + "\nx\n", want: []string{`torn a"b`, "text"}},
	"torn with half an id":   {in: `{"jsonrpc":"2.0","id":5` + "\nx\n", want: []string{"torn 5", "text"}},
	"torn lines":             {in: indented(answer5)[:40] + "\nINFO hello\n" + answer6 + "\n", want: []string{"torn 5", "text", "text", "message 6"}},
	"of another version":     {in: `{"jsonrpc":"1.0","id":5,"result":{}}` + "\n", want: []string{"torn 5"}},
	"error that is a text":   {in: `{"jsonrpc":"2.0","id":5,"error":"no"} ` + answer6 + "\n", want: []string{"message 5", "message 6"}},
	"very deep":              {in: `{"jsonrpc":"2.0","id":5,"result":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}\n" + asks + "\n", want: []string{"torn 5", "message x"}},

	"cut off":            {in: answer5[:30], want: []string{"torn 5"}, cut: true},
	"cut off text":       {in: "bye", want: []string{"text"}},
	"cut off lines":      {in: indented(answer5)[:40], want: []string{"torn 5", "text"}, cut: true},
	"cut after a line":   {in: "[\n1,\n", want: []string{"text"}, cut: true},
	"cut off after text": {in: "got " + answer5[:30], want: []string{"text"}},
}

// pieces returns what an output is found to be, fed in pieces of some sizes.
func pieces(t *testing.T, in []byte, limit int, sizes ...byte) (all []Piece, cut bool, err error) {
	t.Helper()
	o := Output{Limit: limit, Skips: 100_000}
	sizes = slices.Clone(sizes) // they are the fuzzer's
	for ended := false; !ended; {
		n := len(in)
		if len(sizes) > 0 {
			n, sizes = min(n, int(sizes[0])), append(sizes[1:], sizes[0])
		}
		o.Feed(bytes.Clone(in[:n]))
		if in = in[n:]; len(in) == 0 {
			o.End()
			ended = true
		}
		for {
			p, err := o.Next()
			if err != nil {
				return all, o.IsCut(), err
			}
			if p.Kind == Nothing {
				break
			}
			all = append(all, p)
		}
	}
	require.Zero(t, o.Pending())
	return all, o.IsCut(), nil
}

// named says what was found.
func named(all []Piece) (names []string) {
	for _, p := range all {
		name := [...]string{Message: "message", Response: "response", Torn: "torn", TooLarge: "too large", Text: "text"}[p.Kind]
		id := p.ID
		switch msg := p.Message.(type) {
		case *jsonrpc.Request:
			id = msg.ID
		case *jsonrpc.Response:
			id = msg.ID
		}
		if id.IsValid() {
			name += fmt.Sprint(" ", id.Raw())
		}
		names = append(names, name)
	}
	return names
}

func TestMessagesAreFoundAmongOtherText(t *testing.T) {
	for name, c := range outputs {
		t.Run(name, func(t *testing.T) {
			for _, sizes := range [][]byte{nil, {1}, {2}, {3, 7}, {200}} {
				all, cut, err := pieces(t, []byte(c.in), 1<<20, sizes...)
				require.NoError(t, err)
				require.Equal(t, c.want, named(all))
				require.Equal(t, c.cut, cut)
			}
		})
	}
}

// asOneSees returns what an output is, from all of it at once and line by line.
func asOneSees(in []byte) (all []Piece, cut bool) {
	add := func(kind Kind, data []byte, msg jsonrpc.Message) {
		p := Piece{Kind: kind, Data: data, Message: msg}
		if kind == Message {
			p.Data = nil
		}
		if kind == Torn {
			p.ID = topLevel(data).id
		}
		all = append(all, p)
	}
	line := func() (l []byte) { // takes a line
		n := bytes.IndexByte(in, '\n') + 1
		if n == 0 {
			n = len(in)
		}
		l, in = in[:n], in[n:]
		return l
	}
	text := func(l []byte) {
		if len(bytes.TrimSpace(l)) == 0 {
			return
		}
		begin, resp := responseAtEnd(l, new(int))
		if resp == nil {
			add(Text, l, nil)
			return
		}
		add(Text, l[:begin], nil)
		add(Response, l[begin:], resp)
	}
	broken := func(l []byte) bool {
		begins := bytes.HasPrefix(l, []byte("{")) && bytes.HasPrefix(bytes.TrimLeft(l[1:], blanks), []byte(`"`))
		if begins && bytes.Contains(l, version) {
			add(Torn, l, nil)
			return true
		}
		return false
	}
	for {
		for before := -1; before != len(in); {
			before = len(in)
			in = bytes.TrimPrefix(bytes.TrimLeft(in, blanks), []byte(byteOrderMark))
		}
		if len(in) == 0 {
			return all, cut
		}
		if in[0] != '{' && in[0] != '[' {
			text(line())
			continue
		}
		var s syntax
		n := s.follow(in)
		given := -1 // up to which line the value is given up
		for begin := 0; begin < n || begin == n && s.state == valueBroken; {
			end := bytes.IndexByte(in[begin:], '\n') + 1
			last := end == 0 || begin+end > n || s.state == valueBroken && begin+end == n+1
			if begin > 0 && (last && s.state == valueBroken || end > 0 && isMessage(in[begin:begin+end])) {
				given = begin
				break
			}
			if last {
				break
			}
			begin += end
		}
		switch {
		case given > 0:
			if !broken(in[:given]) {
				add(Text, in[:given], nil)
			}
			in = in[given:]
		case s.state == valueBroken:
			if l := line(); !broken(l) {
				text(l)
			}
		case s.state != valueComplete:
			cut = true
			last := bytes.LastIndexByte(in, '\n') + 1
			if last == 0 {
				last = len(in)
			}
			if !broken(in[:last]) {
				add(Text, in[:last], nil)
			}
			in = in[last:]
		default:
			whole := in[:n]
			in = in[n:]
			if msg, ok := decodeWhole(whole); ok {
				add(Message, whole, msg)
				continue
			}
			var parts []json.RawMessage
			var msgs []Piece
			if json.Unmarshal(whole, &parts) == nil {
				for _, part := range parts {
					if msg, ok := decodeWhole(part); ok {
						msgs = append(msgs, Piece{Kind: Message, Message: msg})
					}
				}
			}
			if len(msgs) > 0 && len(msgs) == len(parts) {
				all = append(all, msgs...)
				continue
			}
			if topLevel(whole).versioned {
				add(Torn, whole, nil)
			} else {
				add(Text, whole, nil)
			}
			text(line())
		}
	}
}

// However an output is cut into pieces, what is found in it is what one sees in all of it.
func FuzzOutput(f *testing.F) {
	for _, c := range outputs {
		f.Add([]byte(c.in), []byte{1})
		f.Add([]byte(c.in), []byte{3, 50, 0})
	}
	f.Fuzz(func(t *testing.T, in, sizes []byte) {
		if len(sizes) > 0 && bytes.Count(sizes, []byte{0}) == len(sizes) {
			sizes = nil
		}
		want, wantCut := asOneSees(in)
		got, cut, err := pieces(t, in, 1<<20, sizes...)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, wantCut, cut)
	})
}

// Where an object or an array ends does not depend on how it comes, and all JSON is followed to its end.
func FuzzSyntax(f *testing.F) {
	for _, c := range outputs {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.TrimLeft(data, blanks)
		if len(data) == 0 || data[0] != '{' && data[0] != '[' {
			return
		}
		var whole, each syntax
		n := whole.follow(data)
		m := 0
		for ; m < len(data); m++ {
			if taken := each.follow(data[m : m+1]); each.state == valueBroken || each.state == valueComplete {
				m += taken
				break
			}
		}
		require.Equal(t, n, m)
		require.Equal(t, whole.state, each.state)
		if json.Valid(data) && !wellformed.IsTooDeep(data) {
			require.Equal(t, valueComplete, whole.state)
			require.Equal(t, len(bytes.TrimRight(data, blanks)), n)
		}
	})
}

func TestLimitsOfWhatAServerWrites(t *testing.T) {
	const limit = 2 << 20
	message := func(size int) string {
		const head, tail = `{"jsonrpc":"2.0","method":"x","params":"`, `"}`
		return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	}
	for name, c := range map[string]struct {
		in   string
		want error
	}{
		"message of the limit":          {message(limit) + "\n", nil},
		"two messages of the limit":     {message(limit) + message(limit), nil},
		"message over the limit":        {message(limit+1) + "\n", nil},
		"lines of the limit":            {message(limit - 1)[:limit-2] + "\n}", nil},
		"lines over the limit":          {message(limit)[:limit-1] + "\n}", nil},
		"message without an end":        {message(limit + 2)[:limit+1], nil},
		"text of 1 MB":                  {strings.Repeat("x", 1<<20) + "\n", nil},
		"text of more than 1 MB":        {strings.Repeat("x", 1<<20+1) + "\n", ErrEndless},
		"text without an end":           {strings.Repeat("x", 1<<20+1), ErrEndless},
		"text that begins like a value": {`{"a":x` + strings.Repeat("x", 1<<20), ErrEndless},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range [][]byte{nil, {255}} {
				_, _, err := pieces(t, []byte(c.in), limit, size...)
				require.True(t, errors.Is(err, c.want), "%v", err)
			}
		})
	}
}

// A message over the limit is skipped, and what follows it is read. Its id is found before its result, and behind it.
func TestMessageOverTheLimitIsSkipped(t *testing.T) {
	const limit = 15_000
	large := strings.Repeat(`{"id":7,"x":["}\\"]},`, 2000)
	for name, c := range map[string]struct {
		in   string
		want []string
		cut  bool
	}{
		"id first":            {in: `{"jsonrpc":"2.0","id":5,"result":[` + large + "0]}\n" + answer6 + "\n", want: []string{"too large 5", "message 6"}},
		"id last":             {in: `{"result":[` + large + `0],"jsonrpc":"2.0","id":5}` + "\n" + answer6 + "\n", want: []string{"too large 5", "message 6"}},
		"text, id last":       {in: `{"result":"` + strings.Repeat("x", 2*limit) + `","jsonrpc":"2.0","id":5}` + "\n" + answer6 + "\n", want: []string{"too large 5", "message 6"}},
		"many times, id last": {in: `{"result":[` + large + large + `0],"jsonrpc":"2.0","id":5}` + "\n" + answer6 + "\n", want: []string{"too large 5", "message 6"}},
		"no line feed":        {in: `{"result":[` + large + `0],"jsonrpc":"2.0","id":5}` + answer6, want: []string{"too large 5", "message 6"}},
		"lines":               {in: `{"jsonrpc":"2.0","id":5,"result":[` + strings.ReplaceAll(large, "},", "},\n") + "0]\n}\n" + answer6 + "\n", want: []string{"too large 5", "message 6"}},
		"blanks":              {in: `{"jsonrpc":"2.0","id":5,"result":0` + strings.Repeat(" ", 2*limit) + "}\n" + answer6 + "\n", want: []string{"too large 5", "message 6"}},
		"without an id":       {in: `{"jsonrpc":"2.0","method":"x","params":[` + large + "0]}\n" + answer6 + "\n", want: []string{"too large", "message 6"}},
		"broken":              {in: `{"jsonrpc":"2.0","id":5,"result":[` + large + "x\n" + answer6 + "\n", want: []string{"too large 5", "message 6"}},
		"broken, without id":  {in: `{"result":[` + large + "x\n" + answer6 + "\n", want: []string{"too large", "message 6"}},
		"cut":                 {in: `{"jsonrpc":"2.0","id":5,"result":[` + large, want: []string{"too large 5"}, cut: true},
		"cut after a line":    {in: `{"jsonrpc":"2.0","id":5,"result":[` + large + "\n[", want: []string{"too large 5", "text"}, cut: true},
		"torn by messages":    {in: `{"jsonrpc":"2.0","id":5,"result":[` + large + "\n" + tells + "\n" + answer6 + "\n", want: []string{"too large 5", "message", "message 6"}},
		"torn by text":        {in: `{"jsonrpc":"2.0","id":5,"result":[` + large + "\nINFO up\n" + answer6 + "\n", want: []string{"too large 5", "text", "message 6"}},
		"torn by many lines":  {in: `{"jsonrpc":"2.0","id":5,"result":[` + large + "\n1,\n{},\n" + answer6 + "\n", want: []string{"too large 5", "message 6"}},
		"torn, without id":    {in: `{"result":[` + large + "\n" + answer6 + "\n", want: []string{"too large", "message 6"}},
		"a long later line":   {in: "{\"jsonrpc\":\"2.0\",\n" + `"id":5,"result":[` + large + "0]}\n" + answer6 + "\n", want: []string{"too large 5", "message 6"}},
		"a message at last":   {in: "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":[\n" + strings.Repeat("1,", limit/2-30) + "\n" + answer6 + "\n", want: []string{"torn 5", "message 6"}},
		"text before the id":  {in: `{"jsonrpc":"2.0","x":"` + strings.Repeat("\\\\", 400) + `\"","id":5,"result":[` + large + "0]}\n" + answer6 + "\n", want: []string{"too large 5", "message 6"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, sizes := range [][]byte{nil, {1}, {200}, {3, 255, 7}} {
				all, cut, err := pieces(t, []byte(c.in), limit, sizes...)
				require.NoError(t, err)
				require.Equal(t, c.want, named(all))
				require.Equal(t, c.cut, cut)
			}
		})
	}
}

// What is found does not depend on how the output comes if values are over the limit, either.
func FuzzOversizedOutput(f *testing.F) {
	const limit = 100
	long := strings.Repeat(`{"a":[1,"\\"]},`, 20)
	for _, c := range outputs {
		f.Add([]byte(c.in), []byte{1})
		f.Add([]byte(strings.ReplaceAll(c.in, ":{", ":["+long+"\n"+long+"{")), []byte{3, 50, 7})
	}
	f.Fuzz(func(t *testing.T, in, sizes []byte) {
		if len(sizes) > 0 && bytes.Count(sizes, []byte{0}) == len(sizes) {
			sizes = nil
		}
		want, wantCut, wantErr := pieces(t, in, limit, nil...)
		got, cut, err := pieces(t, in, limit, sizes...)
		require.Equal(t, wantErr, err)
		if err == nil {
			require.Equal(t, want, got)
			require.Equal(t, wantCut, cut)
		}
	})
}

// A value over the limit that may be the answer to any request ends the session.
func TestOversizedValueThatAnswersAnyRequestEndsTheSession(t *testing.T) {
	const limit = 10_000
	long := strings.Repeat("1,", limit)
	for name, in := range map[string]string{
		"a batch":         "[" + answer5 + "," + long + answer6 + "]\n" + asks + "\n",
		"an endless line": `{"jsonrpc":"2.0","id":5,"result":[` + strings.Repeat(long, 7),
		"endless lines":   `{"jsonrpc":"2.0","id":5,"result":[` + strings.Repeat(long+"\n", 7),
	} {
		for _, sizes := range [][]byte{nil, {200}} {
			_, _, err := pieces(t, []byte(in), limit, sizes...)
			require.ErrorIs(t, err, ErrOversized, name)
		}
	}
	_, _, err := pieces(t, []byte(`{"jsonrpc":"2.0","id":5,"result":[`+long+"0]}\n"), int(^uint(0)>>1), 200)
	require.NoError(t, err, "no limit")
}

// A server that is silent after a line in a value over the limit does not go on with it.
func TestOversizedValueIsGivenUpBetweenTwoLinesOnly(t *testing.T) {
	o := Output{Limit: 1000}
	next := func() []string {
		p, err := o.Next()
		require.NoError(t, err)
		if p.Kind == Nothing {
			return nil
		}
		return named([]Piece{p})
	}
	o.Feed([]byte(`{"jsonrpc":"2.0","id":5,"result":[` + strings.Repeat("1,", 1000)))
	require.Equal(t, []string{"too large 5"}, next())
	require.Nil(t, next())
	require.False(t, o.IsOpen())
	o.Feed([]byte("\n"))
	require.Nil(t, next())
	require.True(t, o.IsOpen())
	o.GiveUp()
	require.False(t, o.IsOpen())
	o.Feed([]byte("1] " + answer6 + "\n"))
	require.Equal(t, []string{"text"}, next())
	require.Equal(t, []string{"response 6"}, next())
}

// A server that has ended a line in the middle of a value and is silent does not go on with it.
func TestValueIsGivenUpBetweenTwoLinesOnly(t *testing.T) {
	o := Output{Limit: 1 << 20}
	o.Feed([]byte(`{"jsonrpc":"2.0","id":5,"result":`))
	p, err := o.Next()
	require.NoError(t, err)
	require.Equal(t, Nothing, p.Kind)
	require.False(t, o.IsOpen())
	o.GiveUp()
	p, _ = o.Next()
	require.Equal(t, Nothing, p.Kind, "the line may go on")
	o.Feed([]byte("\n"))
	p, _ = o.Next()
	require.Equal(t, Nothing, p.Kind)
	require.True(t, o.IsOpen())
	o.GiveUp()
	require.False(t, o.IsOpen())
	p, _ = o.Next()
	require.Equal(t, []string{"torn 5"}, named([]Piece{p}))
}

// A server can neither make us look at bytes again and again, nor keep more than we need.
func TestOutputIsReadInLinearTime(t *testing.T) {
	const size = 4 << 20
	fill := func(pattern string) []byte { return []byte(strings.Repeat(pattern, size/len(pattern))) }
	for name, in := range map[string][]byte{
		"one long line":       append(append([]byte(`{"jsonrpc":"2.0","id":5,"result":"`), fill("x")...), "\"}\n"...),
		"many lines":          append(append([]byte("{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":[\n"), fill("{},\n")...), "1]}\n"...),
		"brackets":            fill("[\n"),
		"brackets on a line":  fill("{\"a\":"),
		"objects in text":     fill("x" + strings.Repeat(`{"a":`, 10_000) + `"jsonrpc"}` + "\n"),
		"ends of objects":     append([]byte(`{"a":[`), fill("{},")...),
		"torn messages":       fill(`{"jsonrpc":"2.0","id":5,"result":"` + strings.Repeat("x", 1000) + "\nx\n"), // the SDK's decoder takes 32 KiB for each
		"messages on a line":  fill(tells),
		"lines like messages": append([]byte("[\n"), fill(`{"jsonrpc":7},`+"\n")...),
		"blanks in a value":   append([]byte(`{"a":1,`), fill(" ")...),
		"blanks after it":     append([]byte(`[{}`), fill(" \t")...),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			o := Output{Limit: 16 << 20}
			var err error
			for left := in; len(left) > 0 && err == nil; {
				n := min(1000, len(left))
				o.Feed(left[:n])
				left = left[n:]
				for more := true; more && err == nil; {
					var p Piece
					p, err = o.Next()
					more = p.Kind != Nothing
				}
			}
			runtime.ReadMemStats(&after)
			require.Less(t, o.looked, 8*size, "bytes that were looked at")
			require.Less(t, int(after.TotalAlloc-before.TotalAlloc), 100*size, "bytes that were allocated")
		})
	}
}
