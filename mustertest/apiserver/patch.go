package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

func (s *Server) patch(w http.ResponseWriter, r *request) error {
	if r.name == "" {
		return methodNotAllowed(r.groupResource(), r.verb)
	}
	patchType, err := r.patchType()
	if err != nil {
		return err
	}
	options, err := r.patchOptions(patchType)
	if err != nil {
		return err
	}
	body, err := r.body()
	if err != nil {
		return err
	}
	var out result
	err = s.store.Do(func(tx *store.Tx) error {
		item := tx.Get(r.key())
		if item == nil {
			if patchType != types.ApplyPatchType {
				return apierrors.NewNotFound(r.groupResource(), r.name)
			}
			out, err = s.applyNew(tx, r, body, options)
			return err
		}
		live := s.live(r.kind, item)
		obj, err := s.patched(r, patchType, body, options, live)
		if err != nil {
			return err
		}
		if err := r.matchNamespace(metaOf(obj)); err != nil {
			return err
		}
		if err := r.matchName(obj); err != nil {
			return err
		}
		out, err = s.finishUpdate(tx, r, item, live, obj)
		return err
	})
	if err != nil {
		return err
	}
	s.respond(w, r, out)
	return nil
}

func (r *request) patchType() (types.PatchType, error) {
	media, _, err := mime.ParseMediaType(r.http.Header.Get("Content-Type"))
	known := []types.PatchType{types.JSONPatchType, types.MergePatchType, types.ApplyPatchType}
	if r.kind.Builtin() {
		known = append(known, types.StrategicMergePatchType)
	}
	if patchType := types.PatchType(media); err == nil && slices.Contains(known, patchType) {
		return patchType, nil
	}
	var names []string
	for _, patchType := range known {
		names = append(names, string(patchType))
	}
	return "", r.unsupportedMedia(names...)
}

func (r *request) patchOptions(patchType types.PatchType) (*metav1.PatchOptions, error) {
	options := &metav1.PatchOptions{}
	if err := metav1.Convert_url_Values_To_v1_PatchOptions(&r.query, options, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if errs := metav1validation.ValidatePatchOptions(options, patchType); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}, "", errs)
	}
	return options, nil
}

// patched returns the patched object, including its managed fields.
func (s *Server) patched(r *request, patchType types.PatchType, body []byte, options *metav1.PatchOptions,
	live kinds.Object) (kinds.Object, error) {
	if patchType == types.ApplyPatchType {
		return s.applied(r, body, options, live)
	}
	var obj kinds.Object
	var strict []error
	var encoded []byte
	var err error
	if patchType == types.StrategicMergePatchType {
		obj, strict, err = r.strategic(body, live)
	} else {
		encoded, strict, err = r.textual(patchType, body, live)
		if err == nil {
			var more []error
			if obj, more, err = r.kind.FromJSON(encoded); err != nil {
				err = apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
					field.Invalid(field.NewPath("patch"), string(encoded), err.Error())})
			}
			strict = append(strict, more...)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := r.strict(strict); err != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(encoded), err.Error())})
	}
	if kindOf(obj) != kindOf(live) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the patched object is a %s, not a %s", kindOf(obj), kindOf(live)))
	}
	return obj, s.track(r, r.subresource, runtime.DeepCopyJSON(live), obj, r.manager())
}

// textual applies a JSON patch or a merge patch.
func (r *request) textual(patchType types.PatchType, body []byte, live kinds.Object) ([]byte, []error, error) {
	current, err := json.Marshal(live)
	if err != nil {
		return nil, nil, err
	}
	if patchType == types.JSONPatchType {
		var operations []struct {
			Op    string `json:"op"`
			Path  string `json:"path"`
			From  string `json:"from"`
			Value any    `json:"value"`
		}
		strict, err := kjson.UnmarshalStrict(body, &operations)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		for i, err := range strict {
			strict[i] = fmt.Errorf("json patch %w", err)
		}
		patch, err := jsonpatch.DecodePatch(body)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest(err.Error())
		}
		const most = 10000
		if len(patch) > most {
			return nil, nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
				"The allowed maximum operations in a JSON patch is %d, got %d", most, len(patch)))
		}
		out, err := patch.Apply(current)
		if err != nil {
			return nil, nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "",
				err.Error(), 0, false)
		}
		return out, strict, nil
	}
	patch := map[string]any{}
	strict, err := kjson.UnmarshalStrict(body, &patch)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	out, err := jsonpatch.MergePatch(current, body)
	if err == jsonpatch.ErrBadJSONPatch { //nolint:errorlint // as kube-apiserver compares it
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	return out, strict, err
}

func (r *request) strategic(body []byte, live kinds.Object) (kinds.Object, []error, error) {
	patch := map[string]any{}
	strict, err := kjson.UnmarshalStrict(body, &patch)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	merged, err := strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(live), patch, r.kind.New())
	switch {
	case err == nil:
	case mergepatch.IsPreconditionFailed(err):
		return nil, nil, apierrors.NewConflict(r.groupResource(), r.name, err)
	case errors.Is(err, mergepatch.ErrBadJSONDoc),
		errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys),
		errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return nil, nil, apierrors.NewBadRequest(err.Error())
	default:
		return nil, nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "",
			err.Error(), 0, false)
	}
	obj, more, err := r.kind.FromMap(merged)
	if err != nil {
		encoded, _ := json.Marshal(patch) // patch was decoded before, so it can be encoded
		return nil, nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(encoded), err.Error())})
	}
	return obj, append(strict, more...), nil
}

// applied merges an apply configuration into the live object.
func (s *Server) applied(r *request, body []byte, options *metav1.PatchOptions,
	live kinds.Object) (kinds.Object, error) {
	config := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal(body, &config.Object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	fields, err := r.kind.FieldManager(r.subresource)
	if err != nil {
		return nil, err
	}
	before := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(live)}
	force := options.Force != nil && *options.Force
	out, err := fields.Apply(before, config, options.FieldManager, force)
	if err != nil {
		return nil, err
	}
	merged, ok := out.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("apply to %s %s: got %T", r.groupResource(), r.name, out)
	}
	obj, strict, err := r.kind.FromMap(merged.Object)
	if err != nil {
		return nil, fmt.Errorf("failed to convert new object (%s/%s; %s) to proper version: unable to convert unstructured "+
			"object to %s: %w",
			config.GetNamespace(), config.GetName(), r.kind.GVK, r.kind.GVK, err)
	}
	if err := yaml.UnmarshalStrict(body, &map[string]any{}); err != nil {
		strict = append(strict, err)
	}
	if err := r.strict(strict); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", err))
	}
	s.stampManagedFields(live, obj)
	return obj, nil
}

// applyNew creates an object by server-side apply.
func (s *Server) applyNew(tx *store.Tx, r *request, body []byte, options *metav1.PatchOptions) (result, error) {
	if r.subresource != "" {
		return result{}, apierrors.NewNotFound(r.groupResource(), r.name)
	}
	obj, err := s.applied(r, body, options, r.kind.Empty())
	if err != nil {
		return result{}, err
	}
	metadata := metaOf(obj)
	if uid, _ := metadata["uid"].(string); uid != "" {
		return result{}, apierrors.NewConflict(r.groupResource(), r.name, fmt.Errorf(
			"uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	if err := r.matchNamespace(metadata); err != nil {
		return result{}, err
	}
	if err := r.matchName(obj); err != nil {
		return result{}, err
	}
	if err := s.authorizeVerb(tx, r, "create"); err != nil {
		return result{}, err
	}
	return s.finishCreate(tx, r, obj)
}
