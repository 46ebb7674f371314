package leave_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/muster-sdk/muster/addon/leave"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// The permissions of the folder rbac are sufficient, also for a client that reads from caches, and all are necessary.
func TestPermissions(t *testing.T) {
	t.Parallel()
	f := newFixtureOnPlane(t, "allowed").withMemberNamespace()
	f.member.Leave.Resources = membershipv1alpha1.OrphanResources
	round := func(f *fixture, gate client.Client) error {
		addon := f.addon("a")
		f.work("addon-a-0", "a", "")
		remaining, err := leave.Gate(gate).Remaining(t.Context(), f.member)
		return errors.Join(err, leave.Gate(gate).Force(t.Context(), f.member), f.deleteRemaining(addon),
			errorIf(err == nil && len(remaining) == 0, "want remaining add-ons, got none"))
	}
	cached, err := cluster.New(f.restrictedConfig, func(o *cluster.Options) { o.Scheme = scheme })
	require.NoError(t, err)
	defer mustertest.Run(t, "the cache", cached.Start)()
	require.True(t, cached.GetCache().WaitForCacheSync(t.Context()))
	f.eventually(func() error { return round(f, cached.GetClient()) })

	for i, rule := range role(t).Rules {
		for _, verb := range rule.Verbs {
			name := rule.Resources[0] + "-" + verb
			t.Run("without "+name, func(t *testing.T) {
				t.Parallel()
				f := newFixtureOnPlane(t, name).withMemberNamespace()
				f.member.Leave.Resources = membershipv1alpha1.OrphanResources
				less := role(t).Rules
				less[i].Verbs = slices.DeleteFunc(less[i].Verbs, func(v string) bool { return v == verb })
				c := mustertest.Client(t, f.user("less-"+name, less), scheme)
				var err error
				if verb == "watch" { // caches watch
					var list client.ObjectList = &v1alpha1.MemberAddonList{}
					if rule.Resources[0] == "works" {
						list = &workv1alpha1.WorkList{}
					}
					_, err = c.Watch(t.Context(), list)
				} else {
					err = round(f, c)
				}
				require.True(t, apierrors.IsForbidden(err), "%v", err)
			})
		}
	}
}

// deleteRemaining deletes the remaining objects of a round.
func (f *fixture) deleteRemaining(addon *v1alpha1.MemberAddon) error {
	withoutFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: f.member.Namespace, Name: "addon-a-0"}}
	var errs []error
	for _, o := range []client.Object{addon, work} {
		errs = append(errs, client.IgnoreNotFound(f.Client.Delete(f.T.Context(), o)),
			client.IgnoreNotFound(f.Client.Patch(f.T.Context(), o, withoutFinalizers)))
	}
	return errors.Join(errs...)
}
