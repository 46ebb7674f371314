package lookup_test

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/internal/lookup"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// A controller evaluates the result of Find: a missing configuration differs from an unknown one.
func Example() {
	setUp := func(mgr manager.Manager, enqueue func(types.NamespacedName)) (*lookup.Finder, error) {
		finder, err := lookup.New(lookup.Options{
			Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper(), Log: mgr.GetLogger(), Changed: enqueue,
		})
		if err != nil {
			return nil, err
		}
		return finder, mgr.Add(finder)
	}
	reconcile := func(ctx context.Context, finder *lookup.Finder, user types.NamespacedName,
		references []config.Reference) ([]v1alpha1.ConfigStatus, error) {
		named := make([]v1alpha1.ConfigReference, len(references))
		for i := range references {
			named[i] = references[i].ConfigReference
		}
		found, unknown, err := finder.Find(ctx, user, named)
		if err != nil || len(unknown) > 0 {
			return nil, err // the member keeps its revision, and the condition Configured names the unknown configurations
		}
		configs, _ := config.Resolve(references, nil, func(r v1alpha1.ConfigReference) string {
			if c := found[r]; c != nil {
				return c.Hash
			}
			return ""
		})
		return configs, nil
	}
	_, _ = setUp, reconcile

	_, err := lookup.New(lookup.Options{Log: logr.Discard()})
	fmt.Println(err)
	// Output:
	// lookup.Options: Cache, Live, Mapper and Changed must be set
}
