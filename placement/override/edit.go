package override

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/scheduler"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// edit computes an object of one cluster.
type edit struct {
	*target
	cluster *scheduler.Cluster
	rules   []*rule
	room    int // the number of bytes and items that may still be added, copied and shifted
}

func (e *edit) deletes() bool {
	return slices.ContainsFunc(e.rules, func(r *rule) bool { return r.deletes })
}

// apply returns the object of the cluster. With an error, it returns the field that the error is about.
func (e *edit) apply() (bundle.Object, string, error) {
	content := runtime.DeepCopyJSON(e.content)
	at, err := "", error(nil)
	if e.variables {
		_, err = expandAll(content, e.expand)
	}
	for i := 0; i < len(e.rules) && err == nil; i++ {
		at = e.rules[i].path
		err = e.patch(content, e.rules[i])
	}
	var object bundle.Object
	if err == nil {
		object, err = bundle.Of(content)
	}
	if err == nil && workv1alpha1.StoredBytes(object.JSON) > workv1alpha1.MaxManifestBytes {
		err = ErrTooLarge
	}
	if inner, isLocated := errors.AsType[*located](err); isLocated {
		return bundle.Object{}, inner.at, inner.err
	}
	return object, at, err
}

func (e *edit) patch(content map[string]any, r *rule) error {
	for i := range r.ops {
		if err := e.do(content, &r.ops[i]); err != nil {
			return within(r.ops[i].at, err)
		}
	}
	if r.merge == nil {
		return nil
	}
	at := r.path + ".mergePatch"
	patch, err := e.copy(r.merge, 0)
	if err != nil {
		return within(at, err)
	}
	if patch, err = expandAll(patch, e.expand); err != nil {
		return within(at, err)
	}
	merge(content, patch)
	return nil
}

func (e *edit) expand(text string) (string, error) {
	out, err := expand(text, of(e.cluster), e.room)
	if err != nil || out == text {
		return text, err
	}
	return out, e.charge(len(out))
}

// copy returns a copy of a value for an insertion at a depth.
func (e *edit) copy(value any, under int) (any, error) {
	size, depth := measure(value)
	if under+depth > workv1alpha1.MaxManifestDepth {
		return nil, ErrTooDeep
	}
	if err := e.charge(size); err != nil {
		return nil, err
	}
	return runtime.DeepCopyJSONValue(value), nil
}

func (e *edit) charge(n int) error {
	if e.room -= n; e.room < 0 {
		return ErrTooLarge
	}
	return nil
}

// measure returns the approximate length of a value as JSON, and its depth.
func measure(value any) (size, depth int) {
	switch value := value.(type) {
	case string:
		return len(value) + 2, 0
	case map[string]any:
		size = 2
		for name, child := range value {
			s, d := measure(child)
			size, depth = size+len(name)+4+s, max(depth, d)
		}
		return size, depth + 1
	case []any:
		size = 2
		for _, child := range value {
			s, d := measure(child)
			size, depth = size+1+s, max(depth, d)
		}
		return size, depth + 1
	default:
		return 5, 0
	}
}

// merge applies a merge patch according to RFC 7386, and returns the changed target.
func merge(target, patch any) any {
	fields, isMap := patch.(map[string]any)
	if !isMap {
		return patch
	}
	out, isMap := target.(map[string]any)
	if !isMap {
		out = make(map[string]any, len(fields))
	}
	for name, value := range fields {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = merge(out[name], value)
		}
	}
	return out
}
