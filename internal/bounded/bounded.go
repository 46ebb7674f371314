// Package bounded limits texts to the size that the API accepts, and metadata to the part that caches need.
package bounded

import (
	"strings"
	"unicode/utf8"
)

// Text truncates a text to at most limit bytes, which must be at least 3, between two characters. It replaces invalid
// UTF-8. The API would return such bytes in another form, and the caller would write the text again.
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

// Metadata returns the labels or annotations of the domain muster.dev, and at most one other entry. The other entry
// shows a caller that is about to add the first entry of muster that the map exists. Agents may write as much metadata
// to their Works as etcd accepts, and a cache keeps only this part of it.
func Metadata(all map[string]string) map[string]string {
	own := func(key string) bool {
		domain, _, ok := strings.Cut(key, "/")
		return ok && (domain == "muster.dev" || strings.HasSuffix(domain, ".muster.dev"))
	}
	kept, other := map[string]string{}, ""
	for key, value := range all {
		switch {
		case own(key):
			kept[key] = value
		case other == "" || key < other:
			other = key
		}
	}
	switch {
	case len(kept) == len(all):
		return all
	case len(kept) == 0:
		kept[strings.Clone(other)] = ""
	}
	return kept
}
