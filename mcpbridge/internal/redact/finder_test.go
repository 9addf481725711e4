package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// largeCookies returns as many cookies as a server can set, each as large as it can be, and
// alike for as long as possible.
func largeCookies() (secrets []string) {
	for i := range 64 {
		secrets = append(secrets, strings.Repeat("a+/%", 900)+fmt.Sprint(i), fmt.Sprint(i)+strings.Repeat("a+/%", 900), strings.Repeat("a", i+8)+"b")
	}
	return secrets
}

// alikeTexts returns long texts that are like these cookies for as long as possible.
func alikeTexts() []string {
	return []string{
		strings.Repeat("a+/%", 15_000),
		strings.Repeat("a+/%", 899) + strings.Repeat("&amp;\\u002f%2B", 5_000),
		strings.Repeat("a", 60_000),
		strings.Repeat(strings.Repeat("a+/%", 15)+"a+/", 1_000),
		strings.Repeat("7a+/%", 10_000),
	}
}

// A server chooses the secrets and the text: what it sends may not cost more than a bounded
// number of comparisons.
func TestWorkForATextIsBounded(t *testing.T) {
	secrets := largeCookies()
	for _, text := range alikeTexts() {
		f := newFinder(secrets)
		f.blackOut(text[:maxText])
		all := 10 * maxText
		for _, s := range secrets {
			all += len(s)
		}
		require.LessOrEqual(t, f.work, all, "each byte is looked at a few times, however alike they are")
		require.LessOrEqual(t, len(Clean(text, secrets...)), MaxDetail+len("…"))
	}
}

// foldedViews returns the folded forms of a text and of what base64 in it stands for.
func foldedViews(text string) string {
	var shown, letters string
	for r := range characters(text, inText) {
		shown += string(r)
	}
	for _, run := range regexp.MustCompile(`[\w+/-]+`).FindAllString(shown, -1) {
		if len(run) >= minRun {
			letters += strings.NewReplacer("-", "+", "_", "/").Replace(run)
		}
	}
	views := []string{shown}
	for first := range min(4, len(letters)) {
		whole := letters[first : len(letters)-(len(letters)-first)%4]
		decoded, _ := base64.StdEncoding.DecodeString(whole)
		views = append(views, strings.ToValidUTF8(string(decoded), "�"))
	}
	for i, view := range views {
		var folded []byte
		for _, r := range view {
			folded = fold(folded, r)
		}
		views[i] = string(folded)
	}
	return strings.Join(views, "\x00")
}

// Whatever the text is, no secret is in it in the end, however it was escaped.
func TestNoSecretIsLeft(t *testing.T) {
	escaped := []func(string) string{
		func(s string) string { return s },
		func(s string) string { b, _ := json.Marshal(s); return string(b[1 : len(b)-1]) },
		html.EscapeString, url.QueryEscape, url.PathEscape,
		func(s string) string { return strings.ToLower(url.QueryEscape(s)) },
		func(s string) string { return strings.Join(strings.Split(s, ""), "\u200b") },
		strings.ToUpper,
		func(s string) string {
			b, _ := json.Marshal(s)
			b, _ = json.Marshal(string(b))
			return string(b[3 : len(b)-3])
		},
		func(s string) string { return html.EscapeString(html.EscapeString(s)) },
		func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
		func(s string) string { return base64.StdEncoding.EncodeToString([]byte("Bearer " + s + ".")) },
		func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("a " + s + " b"))[2:] },
		func(s string) string { return s[len(s)/3:] },
	}
	letters := []rune(`abb/&%+\"< é`)
	for seed := range uint64(3_000) {
		random := rand.New(rand.NewPCG(seed, 1))
		word := func(n int) string {
			var b strings.Builder
			for b.Len() < n {
				b.WriteRune(letters[random.IntN(len(letters))])
			}
			return strings.TrimSpace(b.String())
		}
		secrets := []string{"x" + word(12), "x" + word(30) + "y", "y" + word(100) + "z"}
		secrets = append(secrets, secrets[1]+word(9)+"x", secrets[2][50:]+"x")
		var text strings.Builder
		for range random.IntN(20) {
			s := secrets[random.IntN(len(secrets))]
			text.WriteString(escaped[random.IntN(len(escaped))](s) + word(random.IntN(4)))
		}
		all := text.String()
		got := Clean(all[:random.IntN(len(all)+1)], secrets...)
		for _, s := range secrets {
			require.NotContains(t, got, s, "seed %d", seed)
			token := !isPlain(s)
			if s = form(s, fold); len(s) < gram {
				continue
			}
			views := foldedViews(got)
			require.NotContains(t, views, s, "seed %d", seed)
			if token {
				require.NotContains(t, views, s[:max(gram, (len(s)+1)/2)], "seed %d", seed)
				require.NotContains(t, views, s[min(len(s)-gram, len(s)/2):], "seed %d", seed)
			}
		}
	}
}

// A text that is longer than what is read of it does not end with a part of a secret, wherever
// the border is.
func TestSecretAtTheBorderIsBlackedOut(t *testing.T) {
	const secret = "pw é/correct-horse-battery"
	for _, escaped := range []string{secret, url.QueryEscape(secret), `pw \u00e9/correct-horse-battery`, "pw &eacute;/correct-horse-battery", "p\u200bw\u200b é/correct\u200b-horse-battery"} {
		for n := range len(escaped) + 1 {
			// What is invisible takes the room, so that the border is in the result.
			filler := strings.Repeat("\u200b", (maxText-n)/len("\u200b"))
			text := strings.Repeat(".", maxText-n-len(filler)) + filler + escaped + strings.Repeat(" more", 1_000)
			got := strings.TrimLeft(Clean(text, secret), ".")
			if got != "…" { // less than half of what makes a secret says nothing
				require.LessOrEqual(t, len(strings.TrimSuffix(got, "…")), len(`pw &eacute`), "%q of %q", got, escaped)
			}
		}
	}
}

func TestLongTextIsShownAsCut(t *testing.T) {
	require.Equal(t, "short…", Clean("short"+strings.Repeat(" ", maxText), "hunter22"))
	require.Equal(t, "no …", Clean("no "+strings.Repeat("hunter22", maxText), "hunter22", strings.Repeat("hunter22", maxText)))
}

func BenchmarkClean(b *testing.B) {
	text := strings.Repeat("a+/%", 15_000)
	for name, secrets := range map[string][]string{"secrets=0": nil, "secrets=large": largeCookies()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Clean(text, secrets...)
			}
		})
	}
	usual := []string{"Bearer eyJhbGciOiJIUzI1NiJ9.e30.x", "eyJhbGciOiJIUzI1NiJ9.e30.x", "/mcp/abcdefgh0123456789", "abcdefgh0123456789"}
	random := rand.New(rand.NewPCG(1, 1))
	letters := make([]byte, maxText)
	for i := range letters {
		letters[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[random.IntN(52)]
	}
	line := "dial tcp: lookup internal.example.com: no such host; connection failed "
	for name, text := range map[string]string{
		"refusal": "401 Unauthorized: the token Bearer eyJhbGciOiJIUzI1NiJ9.e30.x is not valid any more",
		"line":    line[:60], "lines": strings.Repeat(line, 14), "page": strings.Repeat(line, 112), "letters": string(letters),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Clean(text, usual...)
			}
		})
	}
}
