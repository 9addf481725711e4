package rank

import (
	"slices"
)

// synonyms are, for a word, the words that stand for the same in the names of tools.
var synonyms = synonymsIn(
	// What tools do.
	"get read fetch retrieve show view display open look see",
	"list show enumerate",
	"create add make new insert generate",
	"delete remove drop destroy erase",
	"update edit change modify set patch rename write",
	"search find query lookup look discover",
	"run execute start invoke launch trigger",
	"stop end cancel terminate kill close finish",
	"send post publish submit",
	"save export store download write",
	"upload attach",
	"copy clone duplicate",

	// What they do it to.
	"file document",
	"folder directory dir",
	"issue ticket task bug",
	"pull pr",
	"repository repo",
	"comment note reply",
	"label tag",
	"mail email message",
	"user person people member account",
	"database db",
	"record row entry",
	"column field property",
	"image picture photo screenshot",
	"web internet website site online",
	"news article headline",
	"link relation url",
	"config configuration setting",
	"command shell terminal process",
	"schedule cron",
)

// synonymsIn returns, for each word of the groups, the other words of its groups.
func synonymsIn(groups ...string) map[string][]string {
	all := map[string][]string{}
	for _, group := range groups {
		group := words(group)
		for _, word := range group {
			for _, other := range group {
				if other != word && !slices.Contains(all[word], other) {
					all[word] = append(all[word], other)
				}
			}
		}
	}
	return all
}

// functionWords are English words that say nothing of what is wanted.
var functionWords = words("a an and are as at be but by can do does for from has have how i if in into is it its me my of on or our out so " +
	"that the their them then there these they this those to was we were what when where which who why will with you your")

// meaningful returns words without function words, unless they are all.
func meaningful(words []string) []string {
	rest := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return slices.Contains(functionWords, word) })
	if len(rest) == 0 {
		return words
	}
	return rest
}
