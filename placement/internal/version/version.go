// Package version compares versions of objects.
package version

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Newer reports whether one version of an object is newer than another. That versions can be compared is a promise of
// Kubernetes since 1.35, and what all servers did before; of a server that breaks it, the version that came last is
// taken.
func Newer(came, known metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(came.GetResourceVersion(), known.GetResourceVersion())
	return err != nil || order > 0
}

// Behind reports whether a cache has not come to the version yet that was written last.
func Behind(cached, written metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written.GetResourceVersion())
	return err == nil && order < 0
}
