package testkit

import (
	"strings"
	"unicode/utf8"
)

// Paragraph divides a text into lines of at most 120 columns, for generated documents.
func Paragraph(text string) string {
	var out strings.Builder
	columns := 0
	for word := range strings.FieldsSeq(text) {
		width := utf8.RuneCountInString(word)
		switch {
		case columns == 0:
		case columns+1+width > 120:
			out.WriteByte('\n')
			columns = 0
		default:
			out.WriteByte(' ')
			columns++
		}
		out.WriteString(word)
		columns += width
	}
	return out.String()
}
