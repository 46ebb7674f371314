package feedback_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"github.com/muster-sdk/muster/work/feedback"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// FuzzPath compiles any text and evaluates it for any object if it is a path. No data of Secrets is returned, and if
// kubectl finds one scalar, the result is the same.
func FuzzPath(f *testing.F) {
	for _, path := range []string{
		"", ".", "{}", "$", ".a", "{.a.b}", ".a[0]", ".a[-1:]", ".a[::2]", ".a[*].b", ".a.*", ".*", "..", "..a",
		"{range .a[*]}{.b}{end}", `.a[?(@.b=="c")].d`, `.a[?(@.b>1.5)]`, `.a[?(@.b)]`,
		`.a['b','c']`, `.a[0,1][0,1][0,1]`, `['a.b']`, `.a\.b`, `.a[9223372036854775807]`, `.a[-9223372036854775808:]`,
		`.a[?(@.b==@.c)]`, `.a[?(@[?(@)])]`, `{"text"}`, `{.a}{.b}`, "{true}", "{1.5}", "[[[[", "{{{{", ".a[?(@.b==')')]",
		"\xff", `.a\`,
		".metadata.name", ".data.a", ".metadata.annotations", ".metadata['name','annotations']",
	} {
		f.Add(path, []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"n","annotations":{"a":"hunter2"}},`+
			`"data":{"a":"hunter2"}}`))
		f.Add(path, []byte(`{"apiVersion":"v1","kind":"X","a":[{"b":"c","d":1},{"b":2.5,"c":2.5},[1,[2]],null,true],`+
			`"b":{"c":"<é>"}}`))
	}
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		path, err := feedback.Compile(text)
		if err != nil {
			require.LessOrEqual(t, len(err.Error()), 4096)
			return
		}
		var o unstructured.Unstructured
		if o.UnmarshalJSON(data) != nil {
			return
		}
		value, ok, err := path.Value(&o)
		require.False(t, ok && err != nil)
		require.LessOrEqual(t, len(value.Value), feedback.MaxValueBytes)
		if ok {
			require.True(t, utf8.ValidString(value.Value))
			require.Contains(t, []v1alpha1.FeedbackType{"String", "Number", "Boolean", "JSON"}, value.Type)
			if o.GetKind() == "Secret" && !strings.Contains(o.GetName()+fmt.Sprint(o.GetLabels(), o.Object["type"]), "hunter2") {
				require.NotContains(t, value.Value, "hunter2")
			}
		}
		if want, found := byClientGo(path, o.Object); found && !errors.Is(err, feedback.ErrSecret) &&
			len(want) < feedback.MaxValueBytes {
			require.NoError(t, err)
			require.Equal(t, want, value.Value)
		}
		feedback.WellKnown(&o)
	})
}

// byClientGo returns the result of client-go's evaluation if it is one text.
func byClientGo(path *feedback.Path, object map[string]any) (text string, found bool) {
	defer func() {
		if recover() != nil {
			found = false // client-go panics on some paths
		}
	}()
	template := path.String()
	if !strings.HasPrefix(template, "{.") || strings.ContainsAny(template, "?* \t") {
		return "", false // the two evaluations differ there on purpose
	}
	theirs := jsonpath.New("")
	if theirs.Parse(template) != nil {
		return "", false
	}
	results, err := theirs.FindResults(object)
	if err != nil || len(results) != 1 || len(results[0]) != 1 {
		return "", false
	}
	return reflect.TypeAssert[string](results[0][0])
}
