// Package rank finds the texts that match a query best, by the words that they share. It uses
// the function BM25, with weights for the fields of a document.
//
// Case, accents, and the way in which a name is written ("readFile", "read_file") make no
// difference. A word of the query also finds words that it begins, and words that begin it, such
// as "config" and "configuration". Those count less.
//
// Texts may be in any language. English ones are found better: the endings "s", "ed" and "ing"
// make no difference, and a short list has synonyms that are usual in the names of tools, such as
// "delete" and "remove".
//
// The order depends on nothing but the documents and the query. An [Index] may be used by several
// goroutines at once.
package rank

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Document is the fields of one thing that can be found.
type Document []Field

// Field is one text of a [Document].
type Field struct {
	Text string
	// Weight is how much a word in this field counts, in relation to the other fields. A field
	// whose weight is not positive is ignored.
	Weight float64
}

// Hit is a document that matches.
type Hit struct {
	// Document is the position of the document in the argument of [New].
	Document int
	// Score is greater than 0. Scores for different queries cannot be compared.
	Score float64
}

// Index finds documents.
type Index struct {
	documents int
	words     []string // sorted
	postings  [][]posting
}

// posting is the weight of a word in a document, between 0 and 1+saturation.
type posting struct {
	document int32
	weight   float32
}

const (
	// saturation and normalization are k1 and b of BM25.
	saturation, normalization = 1.2, 0.75
	// shortest is the length of the shortest beginning of a word that counts, in characters.
	shortest = 4
	// synonym is how much a synonym of a word counts.
	synonym = 0.9
	// beginning is how much the beginning of a word counts.
	beginning = 0.3
	// maxWords bounds the different words of a query.
	maxWords = 256
)

// New returns an index of documents.
func New(documents []Document) *Index {
	counts := make([]map[string]float64, len(documents)) // of the words of each document
	lengths := make([]float64, len(documents))
	total, found := 0.0, map[string]int{}
	for i, document := range documents {
		counts[i] = map[string]float64{}
		for _, field := range document {
			if !(field.Weight > 0) {
				continue
			}
			for _, word := range words(field.Text) {
				if counts[i][word] == 0 {
					found[word]++
				}
				counts[i][word] += field.Weight
				lengths[i] += field.Weight
			}
		}
		total += lengths[i]
	}
	x := &Index{documents: len(documents), words: make([]string, 0, len(found))}
	for word := range found {
		x.words = append(x.words, word)
	}
	slices.Sort(x.words)
	at := make(map[string]int, len(found))
	x.postings = make([][]posting, len(found))
	for i, word := range x.words {
		at[word], x.postings[i] = i, make([]posting, 0, found[word])
	}
	average := total / float64(len(documents))
	for i := range documents {
		length := 1 - normalization + normalization*lengths[i]/average
		for word, count := range counts[i] {
			weight := count * (saturation + 1) / (count + saturation*length)
			x.postings[at[word]] = append(x.postings[at[word]], posting{int32(i), float32(weight)})
		}
	}
	return x
}

// Search returns the documents that share words with a query, at most n of them. The best is the
// first. Documents of the same score are in their own order. It reads the first 256 different
// words of the query.
func (x *Index) Search(query string, n int) []Hit {
	if x == nil || n <= 0 {
		return nil
	}
	scores, best := make([]float64, x.documents), make([]float64, x.documents)
	for _, word := range distinct(meaningful(words(query))) {
		x.match(best, word)
		for i, score := range best {
			scores[i] += score
		}
		clear(best)
	}
	var hits []Hit
	for i, score := range scores {
		if score > 0 {
			hits = append(hits, Hit{i, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(n, len(hits))]
}

// distinct returns the first maxWords different words.
func distinct(words []string) (all []string) {
	seen := map[string]bool{}
	for _, word := range words {
		if !seen[word] && len(all) < maxWords {
			seen[word] = true
			all = append(all, word)
		}
	}
	return all
}

// match raises the scores of documents to what a word of the query contributes: in each document, only the
// word that fits best counts. A similar word is not worth more for being rarer than the word itself.
func (x *Index) match(scores []float64, word string) {
	at, exact := slices.BinarySearch(x.words, word)
	limit := math.Inf(1)
	if exact {
		limit = x.rarity(at)
		x.raise(scores, at, limit)
		at++
	}
	similar := func(at int, share float64) { x.raise(scores, at, share*min(limit, x.rarity(at))) }
	for _, other := range synonyms[word] {
		if at, ok := slices.BinarySearch(x.words, other); ok {
			similar(at, synonym)
		}
	}
	if utf8.RuneCountInString(word) < shortest {
		return
	}
	for ; at < len(x.words) && strings.HasPrefix(x.words[at], word); at++ {
		similar(at, beginning)
	}
	length := 0
	for i := range word {
		if length >= shortest {
			if at, ok := slices.BinarySearch(x.words, word[:i]); ok {
				similar(at, beginning)
			}
		}
		length++
	}
}

// rarity returns how much a word of the index counts. A rare word counts more.
func (x *Index) rarity(at int) float64 {
	containing := float64(len(x.postings[at]))
	return math.Log(1 + (float64(x.documents)-containing+0.5)/(containing+0.5))
}

// raise raises the scores of the documents that contain a word of the index.
func (x *Index) raise(scores []float64, at int, factor float64) {
	for _, p := range x.postings[at] {
		scores[p.document] = max(scores[p.document], factor*float64(p.weight))
	}
}
