package revision

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// settings contains the fields of a Content except for its objects, in their stored form.
type settings struct {
	Overrides *v1alpha1.Overrides       `json:"overrides,omitempty"`
	Replicas  *v1alpha1.ReplicaDivision `json:"replicas,omitempty"`
	Work      v1alpha1.WorkTemplate     `json:"work"`
}

// settings returns the settings of the content as JSON. Settings of the same meaning have the same text.
func (c *Content) settings() (json.RawMessage, error) {
	s := settings{c.Overrides, c.Replicas, *c.Work.DeepCopy()}
	for _, field := range defaults(&s.Work) {
		field.clear()
	}
	value, err := canonical(reflect.ValueOf(s))
	if err != nil {
		return nil, err
	}
	fields, _ := value.(map[string]any)
	for _, name := range []string{"overrides", "replicas"} {
		if within, _ := fields[name].(map[string]any); len(within) == 0 {
			delete(fields, name)
		}
	}
	return json.Marshal(fields)
}

// defaulted is a field that the API server sets to a default.
type defaulted struct{ fill, clear func() }

func field[T comparable](at *T, value T) defaulted {
	var unset T
	return defaulted{
		fill: func() {
			if *at == unset {
				*at = value
			}
		},
		clear: func() {
			if *at == value {
				*at = unset
			}
		},
	}
}

// defaults returns all such fields of a Content. A test compares them with those of the CustomResourceDefinition.
func defaults(work *v1alpha1.WorkTemplate) []defaulted {
	return []defaulted{
		field(&work.Apply.Mode, workv1alpha1.ServerSideApply),
		field(&work.Apply.Takeover, workv1alpha1.TakeoverNever),
		field(&work.Apply.Drift, workv1alpha1.DriftCorrect),
		field(&work.Waves.TimeoutSeconds, 600),
		field(&work.Delete.Action, workv1alpha1.DeleteObject),
		field(&work.Delete.Propagation, metav1.DeletePropagationForeground),
	}
}

// canonical returns the value of an API type as decoded JSON. It omits struct fields with the zero value, independently
// of their tags, so a field that is added to a type has no effect until a user sets it; encoding/json would write a
// number, or an empty struct. A pointer that is set is significant even if it points to a zero value. A type that
// encodes itself, such as a patch, is JSON with its own meaning, in which an empty map or a null is significant.
func canonical(v reflect.Value) (any, error) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, nil
		}
		return canonical(v.Elem())
	}
	if opaque, is := reflect.TypeAssert[json.Marshaler](v); is {
		return parsed(opaque)
	}
	switch v.Kind() {
	case reflect.Struct:
		fields := map[string]any{}
		return fields, addFields(fields, v)
	case reflect.Slice:
		items := make([]any, v.Len())
		for i := range items {
			item, err := canonical(v.Index(i))
			if err != nil {
				return nil, err
			}
			items[i] = item
		}
		return items, nil
	default: // scalars, and maps of scalars
		return v.Interface(), nil
	}
}

func addFields(fields map[string]any, v reflect.Value) error {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "" && v.Type().Field(i).Anonymous {
			if err := addFields(fields, v.Field(i)); err != nil {
				return err
			}
			continue
		}
		value, err := canonical(v.Field(i))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !silent(v.Field(i), value) {
			fields[name] = value
		}
	}
	return nil
}

// silent reports whether a field is omitted.
func silent(field reflect.Value, value any) bool {
	switch field.Kind() {
	case reflect.Pointer:
		return value == nil
	case reflect.Slice, reflect.Map:
		return field.Len() == 0
	case reflect.Struct:
		within, isMap := value.(map[string]any)
		return value == nil || isMap && len(within) == 0
	default:
		return field.IsZero()
	}
}

// parsed returns the decoded JSON of a type that encodes itself. It decodes twice, because minus zero is encoded as -0,
// which is then decoded as 0.
func parsed(opaque json.Marshaler) (value any, err error) {
	text, err := opaque.MarshalJSON()
	for range 2 {
		if err != nil {
			return nil, err
		}
		value = nil
		if err := utiljson.Unmarshal(text, &value); err != nil {
			return nil, errors.New("the content is not JSON") // the cause may have a secret in it
		}
		text, err = json.Marshal(value)
	}
	return value, err
}
