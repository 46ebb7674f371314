// Package messages formats messages of conditions: bounded, valid UTF-8, complete sentences.
package messages

import (
	"fmt"
	"slices"
	"strings"
)

// Maximum lengths of messages in bytes.
const (
	// MaxMessage is the limit of a status message. The API rejects longer ones.
	MaxMessage = 1024
	// MaxPart is the limit of a quoted message, for example of a member.
	MaxPart = 512
)

// Join joins the messages that are not empty.
func Join(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(one string) bool { return one == "" }), " ")
}

// Message adds a full stop to a message if it has none.
func Message(text string) string {
	if text == "" || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "…") {
		return text
	}
	return text + "."
}

// Count formats a number of things, for example "1 member" and "2 members".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
