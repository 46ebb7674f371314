package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Content types of request bodies.
const (
	JSON     = runtime.ContentTypeJSON
	YAML     = runtime.ContentTypeYAML
	Protobuf = runtime.ContentTypeProtobuf
)

// Decoded is a decoded request body. The field validation directive of the request determines whether the Strict errors
// are ignored, returned as warnings or returned as errors.
type Decoded struct {
	Object Object
	GVK    schema.GroupVersionKind
	Strict []error
}

// Decode decodes a body of the given content type, prunes unknown fields and sets defaults. Object is nil without an
// error if the body has another GVK than the kind. All errors describe mistakes of the client.
func (k *Kind) Decode(body []byte, contentType string) (Decoded, error) {
	if contentType == Protobuf {
		return k.decodeProtobuf(body)
	}
	gvk := k.GVK
	var strict []error
	if contentType == YAML {
		converted, err := yaml.YAMLToJSON(body)
		if err != nil {
			return Decoded{GVK: gvk}, err
		}
		if _, err := yaml.YAMLToJSONStrict(body); err != nil {
			strict = append(strict, err)
		}
		body = converted
	}
	var typeMeta struct { // as in Kubernetes: the type is part of an error message
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
	}
	if err := json.Unmarshal(body, &typeMeta); err != nil {
		return Decoded{}, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	if typeMeta.Kind != "" {
		gvk.Kind = typeMeta.Kind
	}
	if typeMeta.APIVersion != "" {
		gv, err := schema.ParseGroupVersion(typeMeta.APIVersion)
		if err != nil {
			return Decoded{}, err
		}
		gvk = gv.WithKind(gvk.Kind)
	}
	if gvk != k.GVK {
		if k.builtin != nil && !scheme.Scheme.Recognizes(gvk) {
			return Decoded{GVK: gvk}, fmt.Errorf("no kind %q is registered for version %q in scheme %q", gvk.Kind,
				gvk.GroupVersion(), "pkg/runtime/scheme.go:111")
		}
		return Decoded{GVK: gvk}, nil
	}
	obj, more, err := k.decodeJSON(body)
	if err != nil {
		return Decoded{GVK: gvk}, err
	}
	return Decoded{Object: obj, GVK: gvk, Strict: append(strict, more...)}, nil
}

func (k *Kind) decodeJSON(body []byte) (Object, []error, error) {
	if k.custom != nil {
		return k.custom.decode(body)
	}
	typed := k.builtin.new()
	strict, err := kjson.UnmarshalStrict(body, typed)
	if err != nil {
		return nil, nil, err
	}
	if k.builtin.defaults != nil {
		k.builtin.defaults(typed)
	}
	return k.toObject(typed), strict, nil
}

// FromJSON decodes the JSON that a patch produced. It prunes unknown fields, returns their errors, and sets defaults.
func (k *Kind) FromJSON(body []byte) (Object, []error, error) { return k.decodeJSON(body) }

// FromMap does the same as FromJSON for a map. The caller must not use the map after the call.
func (k *Kind) FromMap(obj Object) (Object, []error, error) {
	if k.custom != nil {
		strict, err := k.custom.coerce(obj)
		if err == nil {
			k.custom.defaults(obj)
		}
		return obj, strict, err
	}
	typed := k.builtin.new()
	var strict []error
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj, typed, true); err != nil {
		strictErr, ok := runtime.AsStrictDecodingError(err)
		if !ok {
			return nil, nil, err
		}
		strict = strictErr.Errors()
	}
	if k.builtin.defaults != nil {
		k.builtin.defaults(typed)
	}
	return k.toObject(typed), strict, nil
}

var protobufs = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

func (k *Kind) decodeProtobuf(body []byte) (Decoded, error) {
	if k.builtin == nil {
		return Decoded{}, fmt.Errorf("custom resources have no protobuf encoding")
	}
	gvk := k.GVK
	typed, actual, err := protobufs.Decode(body, &gvk, k.builtin.new())
	if actual != nil {
		gvk = *actual
	}
	if err != nil {
		return Decoded{GVK: gvk}, err
	}
	if gvk != k.GVK {
		return Decoded{GVK: gvk}, nil
	}
	if k.builtin.defaults != nil {
		k.builtin.defaults(typed)
	}
	return Decoded{Object: k.toObject(typed), GVK: gvk}, nil
}

// DecodeProtobuf decodes a protobuf body, such as the options of a delete request.
func DecodeProtobuf(body []byte, into runtime.Object) error {
	_, _, err := protobufs.Decode(body, nil, into)
	return err
}

// EncodeProtobuf encodes an object of a built-in kind, a list of them, or a Status.
func EncodeProtobuf(obj runtime.Object) ([]byte, error) {
	var out bytes.Buffer
	if err := protobufs.Encode(obj, &out); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Typed converts an object of a built-in kind to its Go type.
func (k *Kind) Typed(obj Object) (runtime.Object, error) {
	typed := k.builtin.new()
	return typed, FromObject(obj, typed)
}

func equal(a, b Object) bool { return apiequality.Semantic.DeepEqual(a, b) }
