// Package words makes the texts of statuses: bounded, valid and of whole sentences.
package words

import (
	"fmt"
	"slices"
	"strings"
)

// How long texts may be, in bytes.
const (
	// MaxSentence is for what a status says; the API refuses a longer one.
	MaxSentence = 1024
	// MaxPart is for what others say in it, such as members.
	MaxPart = 512
)

// Join makes one text of those sentences that are not empty.
func Join(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(one string) bool { return one == "" }), " ")
}

// Sentence ends a text, that another may follow.
func Sentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "…") {
		return text
	}
	return text + "."
}

// Count is a number of things, such as "1 member" and "2 members".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
