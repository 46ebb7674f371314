package feedback

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// MaxValueBytes is the maximum length of a value. A status has room for one such value of each of 500 manifests.
const MaxValueBytes = 1024

// ErrSecret is the error of a path that would report confidential fields of a Secret.
var ErrSecret = errors.New("only the type and the identifying metadata of a Secret can be reported")

// Value evaluates the path. The returned value has no name. If the path selects nothing, ok is false. The object is
// not changed.
//
// An error concerns this path and this object: it is [ErrSecret], or the value or the evaluation exceeds a limit.
func (p *Path) Value(object *unstructured.Unstructured) (value v1alpha1.FeedbackValue, ok bool, err error) {
	if object == nil {
		return value, false, nil
	}
	// This applies to Secrets of any group: a kind of that name in another group may be confidential as well.
	if object.GetKind() == "Secret" && !p.public {
		return value, false, fmt.Errorf("%s: %w", p.text, ErrSecret)
	}
	found, err := (&walk{}).along(p.nodes, []any{object.Object})
	if err == nil {
		value, ok, err = render(found)
	}
	if err != nil {
		return v1alpha1.FeedbackValue{}, false, fmt.Errorf("%s: %w", p.text, err)
	}
	return value, ok, nil
}

// render returns the feedback value for the selected values.
func render(found []any) (value v1alpha1.FeedbackValue, ok bool, err error) {
	found = slices.DeleteFunc(slices.Clone(found), func(one any) bool { return one == nil })
	switch len(found) {
	case 0:
		return value, false, nil
	case 1:
		value.Value, value.Type, err = encode(found[0])
	default:
		value.Value, err = encodeList(found)
		value.Type = v1alpha1.FeedbackJSON
	}
	if length := len(value.Value); length > MaxValueBytes && err == nil {
		err = fmt.Errorf("the value has %d bytes, more than the limit of %d bytes", length, MaxValueBytes)
	}
	return value, err == nil, err
}

// encodeList stops as soon as the list is too long: the selection may contain the same large value a thousand times.
func encodeList(found []any) (string, error) {
	var list strings.Builder
	for i, one := range found {
		text, err := asJSON(one)
		if err != nil {
			return "", err
		}
		if list.Len()+len(text)+len("[]") > MaxValueBytes {
			return "", fmt.Errorf("the first %d of %d values have more than the limit of %d bytes", i+1, len(found),
				MaxValueBytes)
		}
		list.WriteString("[,"[min(i, 1):min(i, 1)+1] + text)
	}
	return list.String() + "]", nil
}

func encode(value any) (text string, kind v1alpha1.FeedbackType, err error) {
	switch v := value.(type) {
	case string:
		// The hub would store invalid UTF-8 as another text, so that the status would be written again and again.
		return strings.ToValidUTF8(v, "\uFFFD"), v1alpha1.FeedbackString, nil
	case bool:
		kind = v1alpha1.FeedbackBoolean
	case map[string]any, []any:
		kind = v1alpha1.FeedbackJSON
	default: // the remaining types of JSON are numbers
		kind = v1alpha1.FeedbackNumber
	}
	text, err = asJSON(value)
	return text, kind, err
}

func asJSON(value any) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // users read the value
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}
