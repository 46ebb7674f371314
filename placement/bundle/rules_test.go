package bundle

import (
	"os"
	"strings"
	"testing"
)

// table formats the rows as in doc.go.
func table() string {
	var out strings.Builder
	out.WriteString("// [Clean] removes:\n//\n")
	for _, r := range removals {
		fields := make([]string, 0, len(r.names))
		for _, name := range r.names {
			switch {
			case strings.ContainsAny(name, "./"):
				fields = append(fields, r.in+"["+name+"]")
			case r.in != "":
				fields = append(fields, r.in+"."+name)
			default:
				fields = append(fields, name)
			}
		}
		line(&out, r.kinds, strings.Join(fields, ", ")+": "+r.reason)
	}
	out.WriteString("//\n// It refuses:\n//\n")
	for _, r := range refusals {
		line(&out, r.kinds, r.which+": "+r.reason)
	}
	return out.String()
}

func line(out *strings.Builder, k kinds, text string) {
	kindNames := strings.Join(k.kinds, ", ")
	if kindNames != "" {
		kindNames += " "
	}
	out.WriteString("//   - " + strings.ReplaceAll(kindNames+text, " :", ":") + "\n")
}

func TestDocHasTheTable(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	if want := table(); !strings.Contains(words(string(doc)), words(want)) {
		t.Errorf("doc.go is not up to date; it should have\n%s", want)
	}
}

// words returns the words of a comment on one line, so that the comment may be broken anywhere.
func words(comment string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(comment, "//", " ")), " ")
}
