package rank

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextsAreSplitIntoWordsThatCanBeCompared(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"read_file read-file":     "read file read file readfil",
		"to-dos -x- a - b":        "to dos todo x a b",
		"readFile":                "read file readfil",
		"HTTPServer":              "http server httpserver",
		"GitHub":                  "git hub github",
		"parseJSON":               "pars json parsejson",
		"S3 s3_upload base64":     "s3 s3 upload base64",
		"files, Queries; boxes":   "file query box",
		"status address analysis": "status address analysis",
		"is as bus":               "is as bus",
		"called calling calls":    "call call call",
		"dropped dropping":        "drop drop",
		"removed remove removing": "remov remov remov",
		"string need ring":        "string need ring",
		"Café CAFÉ cafe\u0301":    "cafe cafe cafe",
		"Straße ΕΛΛΆΔΑ Ёлка":      "straß ελλαδα елка",
		"ﬁle ｆｕｌｌ":                "file full",
		"天気予報":                    "天気 気予 予報",
		"天":                       "天",
		"get天気now":                "get 天気 now",
		"हिन्दी की":               "हिन्दी की",
		"\xff\xfe a\x00b":         "a b",
		"🎉 party 🎉":               "party",
	} {
		require.Equal(t, want, strings.Join(words(text), " "), "%q", text)
	}
}

// named returns documents for texts of the form "name: description".
func named(texts ...string) (all []Document) {
	for _, text := range texts {
		name, description, _ := strings.Cut(text, ": ")
		all = append(all, Document{{Text: name, Weight: 3}, {Text: description, Weight: 1}})
	}
	return all
}

func TestBestMatchesComeFirst(t *testing.T) {
	texts := []string{
		"create_issue: Opens a new issue in a GitHub repository",
		"list_issues: Lists the issues of a repository",
		"send_email: Sends a message to a person",
		"search_messages: Finds email in the mailbox",
		"configuration_get: Reads a setting",
		"天気予報: 明日の天気を調べる",
		"leer_archivo: Lee el contenido de un archivo de configuración",
	}
	x := New(named(texts...))
	for query, want := range map[string]string{
		"open a github issue":       "create_issue",
		"show me all issues":        "list_issues",
		"send an e-mail to Ada":     "send_email",
		"email":                     "send_email search_messages",
		"config":                    "configuration_get leer_archivo",
		"configurations":            "configuration_get",
		"天気":                        "天気予報",
		"ARCHIVO":                   "leer_archivo",
		"configuracion del archivo": "leer_archivo",
		"":                          "",
		"zzz":                       "",
	} {
		var got []string
		for _, hit := range x.Search(query, max(1, len(strings.Fields(want)))) {
			name, _, _ := strings.Cut(texts[hit.Document], ":")
			got = append(got, name)
		}
		require.Equal(t, want, strings.Join(got, " "), query)
	}
}

func TestNamesCountMoreThanDescriptionsAndRareWordsMoreThanCommonOnes(t *testing.T) {
	x := New(named("file: text", "text: file", "other: nothing"))
	require.Equal(t, 0, x.Search("file", 1)[0].Document)
	x = New(named("a: common common", "b: common rare", "c: common"))
	require.Equal(t, 1, x.Search("common rare", 1)[0].Document)
}

func TestSynonymsCountAlmostAsMuchAsTheWordItself(t *testing.T) {
	x := New(named("delete_note: a", "erase_drop_destroy: b", "remove_note: c", "note: d"))
	var order []int
	for _, hit := range x.Search("removing", 5) {
		order = append(order, hit.Document)
	}
	require.Equal(t, []int{2, 0, 1}, order)
	x = New(named("archive: folder", "other: directory", "another: directory"))
	hits := x.Search("directory", 5)
	require.Len(t, hits, 3)
	require.Equal(t, 0, hits[2].Document, "a rare synonym is not worth more than the word")
}

func TestEqualDocumentsStayInTheirOrder(t *testing.T) {
	x := New(named("b: same", "a: same", "c: same"))
	for range 10 {
		var order []int
		for _, hit := range x.Search("same", 5) {
			order = append(order, hit.Document)
		}
		require.Equal(t, []int{0, 1, 2}, order)
	}
}

func TestOddArguments(t *testing.T) {
	var none *Index
	require.Empty(t, none.Search("a", 1))
	require.Empty(t, New(nil).Search("a", 1))
	require.Empty(t, New([]Document{nil, {}, {{Text: "a"}}, {{Text: "a", Weight: -1}}}).Search("a", 1))
	x := New(named("a: b", "a: c"))
	require.Empty(t, x.Search("a", 0))
	require.Empty(t, x.Search("a", -1))
	require.Len(t, x.Search("a", 1), 1)
	require.Len(t, x.Search(strings.Repeat("x ", 1000)+"b c", 5), 2, "the same word counts once")
}

func FuzzSearch(f *testing.F) {
	f.Add("read_file: Reads\nwrite: x", "read")
	f.Add("天気\nÀ: é\xff", "天 e")
	f.Fuzz(func(t *testing.T, texts, query string) {
		documents := named(strings.Split(texts, "\n")...)
		x := New(documents)
		hits := x.Search(query, 3)
		require.LessOrEqual(t, len(hits), 3)
		require.Equal(t, hits, New(documents).Search(query, 3))
		require.True(t, slices.IsSortedFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) }))
		for _, hit := range hits {
			require.Positive(t, hit.Score)
		}
	})
}

// catalog returns the documents of 1,000 tools.
func catalog() []Document {
	random := rand.New(rand.NewPCG(1, 2))
	verbs := strings.Fields("get list create update delete search send read write open close start stop merge export import")
	nouns := strings.Fields("file issue message user event page table row order invoice repository branch image calendar contact note task ticket")
	var filler []string
	for i := range 2000 {
		filler = append(filler, fmt.Sprintf("word%c%c%d", 'a'+i%26, 'a'+i/26%26, i))
	}
	all := make([]Document, 1000)
	for i := range all {
		verb, noun := verbs[random.IntN(len(verbs))], nouns[random.IntN(len(nouns))]
		text := fmt.Sprintf("The tool can %s one %s.", verb, noun)
		for range 40 {
			text += " " + filler[random.IntN(len(filler))]
		}
		all[i] = Document{{Text: fmt.Sprintf("%s_%s_%d", verb, noun, i), Weight: 3}, {Text: text, Weight: 1}}
	}
	return all
}

func BenchmarkSearch(b *testing.B) {
	x := New(catalog())
	for name, query := range map[string]string{
		"words=3":  "merge a branch",
		"words=60": strings.Repeat("please list the invoices of this user and send a message about the order wordab27 ", 4),
	} {
		b.Run("documents=1000/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x.Search(query, 10)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	documents := catalog()
	b.Run("documents=1000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			New(documents)
		}
	})
}
