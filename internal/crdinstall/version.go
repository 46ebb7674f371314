package crdinstall

import (
	"context"
	"fmt"
	"runtime/debug"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// VersionAnnotation is an annotation of a definition. Its value is the version of the muster module that last applied
// the definition.
const VersionAnnotation = "muster.dev/version"

const module = "github.com/muster-sdk/muster"

// versionIn returns the version of the muster module in a program. It returns nil if the build does not contain the
// version, such as in tests, or if the module is replaced by a folder. Such a program neither records nor compares
// versions.
func versionIn(build *debug.BuildInfo) *version.Version {
	if build == nil {
		return nil
	}
	for _, m := range append([]*debug.Module{&build.Main}, build.Deps...) {
		if m.Path != module {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		if parsed, err := version.ParseSemantic(m.Version); err == nil {
			return parsed
		}
	}
	return nil
}

// newer returns the version of the installed definition if it is newer than own. Otherwise it returns nil: the
// installed version is not newer, the definition does not exist, or it has no version.
func newer(ctx context.Context, c client.Client, definition *unstructured.Unstructured,
	own *version.Version) (*version.Version, error) {
	if own == nil {
		return nil, nil
	}
	installed := &unstructured.Unstructured{}
	installed.SetGroupVersionKind(definition.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(definition), installed)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", definition.GetName(), err)
	}
	there, err := version.ParseSemantic(installed.GetAnnotations()[VersionAnnotation])
	if err != nil || !own.LessThan(there) {
		return nil, nil //nolint:nilerr // An absent or foreign value is not newer.
	}
	return there, nil
}

// recorded returns a copy of the definition with the version that applies it.
func recorded(definition *unstructured.Unstructured, own *version.Version) *unstructured.Unstructured {
	definition = definition.DeepCopy()
	if own != nil {
		annotations := definition.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[VersionAnnotation] = "v" + own.String()
		definition.SetAnnotations(annotations)
	}
	return definition
}
