// Package bounded bounds texts to what the API takes.
package bounded

import (
	"strings"
	"unicode/utf8"
)

// Text bounds a text to so many bytes, at least 3, between two characters. What is not UTF-8 would come back from the
// API as something else, and be written again.
func Text(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	const more = "…"
	end := limit - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}
