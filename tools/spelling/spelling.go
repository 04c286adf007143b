// Package spelling guesses which word was meant by one that is not known.
package spelling

import (
	"cmp"
	"slices"
	"strings"
)

const (
	mostGuesses  = 3
	longestWord  = 100 // longer ones are no typing errors
	shortestHead = 3
)

// Closest are the known words that somebody may have meant, the likeliest first: those that the word begins, and those of which it differs by a letter in three at most. Letters that changed places are
// one difference.
func Closest(word string, known []string) []string {
	type guess struct {
		word     string
		distance int
	}
	if len(word) > longestWord {
		return nil
	}
	var guesses []guess
	for _, k := range known {
		d := distance(word, k)
		switch {
		case d <= max(len(word), len(k))/3:
		case len(word) >= shortestHead && strings.HasPrefix(k, word):
		default:
			continue
		}
		guesses = append(guesses, guess{k, d})
	}
	slices.SortFunc(guesses, func(a, b guess) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.word, b.word))
	})
	var words []string
	for _, g := range guesses[:min(len(guesses), mostGuesses)] {
		words = append(words, g.word)
	}
	return words
}

// distance counts the letters that have to be put in, left out, replaced, or swapped with the next to make one word of another.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
