// Package bounded limits texts and metadata to what the API accepts and caches need.
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

// Metadata returns the labels or annotations of muster, which are those of the domain muster.dev, and at most one other
// entry. The other entry shows a caller that is about to add the first entry of muster that the map exists. Agents may
// write as much metadata of their Works as etcd accepts, and a cache keeps no more of it than this.
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
