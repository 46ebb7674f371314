package leave_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/internal/removal"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// played is a controller of MemberAddons. At each reconcile it performs the step of package removal, with a hook for
// each add-on and a Secret for its access to the hub, if there is one.
type played struct {
	*fixture

	forced  map[string]bool
	actions []removal.Action
}

// reconcile reconciles all MemberAddons of the member.
func (p *played) reconcile() {
	p.T.Helper()
	var list v1alpha1.MemberAddonList
	require.NoError(p.T, p.Client.List(context.Background(), &list, client.InNamespace(p.member.Namespace)))
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp != nil {
			p.remove(&list.Items[i])
		}
	}
}

func (p *played) remove(addon *v1alpha1.MemberAddon) {
	p.T.Helper()
	ctx := context.Background()
	var works workv1alpha1.WorkList
	require.NoError(p.T,
		p.Client.List(ctx, &works, client.InNamespace(addon.Namespace),
			client.MatchingLabels{v1alpha1.AddonLabel: addon.Name}))
	o := removal.Observed{
		Now: time.Now(), Started: addon.DeletionTimestamp.Time,
		Finalizer: slices.Contains(addon.Finalizers, v1alpha1.MemberAddonFinalizer),
		Forced:    p.forced[addon.Name], Member: removal.Reachable, Jobs: removal.JobsOf(nil),
	}
	for i := range works.Items {
		switch work := &works.Items[i]; {
		case strings.HasSuffix(work.Name, "-hooks"):
			o.Jobs = removal.JobsOf(work)
		case work.DeletionTimestamp == nil:
			o.Works = removal.Present
		case o.Works == removal.Absent:
			o.Works = removal.Terminating
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: addon.Namespace, Name: "addon-" + addon.Name}}
	if p.exists(secret) {
		o.Credentials = removal.Present
	}
	cluster := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: p.member.Name}}
	if p.exists(cluster) && cluster.Status.Leave != nil {
		o.ForceNow = cluster.Status.Leave.Forced
	}
	step := removal.Next(o)
	p.forced[addon.Name] = step.Forced
	if addon.Status.ObservedGeneration != addon.Generation || addon.Status.Message != step.Message {
		addon.Status.ObservedGeneration, addon.Status.Message = addon.Generation, step.Message
		if p.ignoreConflict(p.Client.Status().Update(ctx, addon)) {
			return
		}
	}
	for _, action := range step.Actions {
		p.actions = append(p.actions, action)
		if p.ignoreConflict(p.act(ctx, action, addon, works.Items)) {
			return
		}
	}
}

// let reports whether an error is a conflict with another client.
func (p *played) ignoreConflict(err error) bool {
	p.T.Helper()
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return true
	}
	require.NoError(p.T, err)
	return false
}

func (p *played) act(ctx context.Context, action removal.Action, addon *v1alpha1.MemberAddon,
	works []workv1alpha1.Work) error {
	switch action {
	case removal.RunHooks:
		p.work("addon-"+addon.Name+"-hooks", addon.Name, "")
		return nil
	case removal.RevokeCredentials:
		return p.Client.Delete(ctx,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: addon.Namespace, Name: "addon-" + addon.Name}})
	case removal.RemoveFinalizer:
		addon.Finalizers = nil
		return p.Client.Update(ctx, addon)
	case removal.DeleteWorks, removal.DeleteHooks, removal.StripFinalizers:
		var errs []error
		for i := range works {
			ofHooks := strings.HasSuffix(works[i].Name, "-hooks")
			if action == removal.DeleteWorks && ofHooks || action == removal.DeleteHooks && !ofHooks {
				continue
			}
			errs = append(errs, client.IgnoreNotFound(p.Client.Delete(ctx, &works[i])))
			if action == removal.StripFinalizers {
				errs = append(errs,
					client.IgnoreNotFound(p.Client.Patch(ctx, &works[i],
						client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))))
			}
		}
		return errors.Join(errs...)
	default:
		return fmt.Errorf("unexpected action %s", action)
	}
}
