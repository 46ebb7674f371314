// Package requiredkinds checks that a manager's scheme contains the kinds that a controller uses.
package requiredkinds

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Check returns an error if a scheme does not contain one of the kinds of muster. The error contains the first missing
// kind and the package whose AddToScheme adds it.
func Check(scheme *runtime.Scheme, kinds ...schema.GroupVersionKind) error {
	for _, kind := range kinds {
		if scheme.Recognizes(kind) {
			continue
		}
		folder, _, _ := strings.Cut(kind.Group, ".")
		return fmt.Errorf("the manager's scheme does not contain %s of %s: call AddToScheme of package %s/%s before the "+
			"setup", kind.Kind, kind.GroupVersion(), folder, kind.Version)
	}
	return nil
}
