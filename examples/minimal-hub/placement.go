package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/membership/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// apps is the namespace on the hub for the distributed objects.
const apps = "apps"

// where is the Placement of the shop, as a user would write it for kubectl. Members with the label tier=retail are
// eligible, and one of them is selected.
const where = `
metadata: {name: shop, namespace: apps}
spec:
  policy:
    type: PickN
    numberOfClusters: 1
    affinity:
      required:
      - labelSelector: {matchLabels: {tier: retail}}
`

// what is the WorkSet with the manifests of the shop.
const what = `
metadata: {name: shop, namespace: apps}
spec:
  placements:
  - name: shop
  manifests:
  - apiVersion: v1
    kind: Namespace
    metadata: {name: shop}
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: greeting, namespace: shop}
    data: {text: Welcome!}
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, namespace: shop}
    spec:
      replicas: 2
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec:
          containers:
          - name: web
            image: registry.k8s.io/pause:3.10
`

// allowed is the ClusterSetBinding that allows the Placements of the namespace to select any member. Without a
// ClusterSetBinding, they select no member.
const allowed = `
metadata: {name: global, namespace: apps}
spec:
  clusterSetName: global
`

// distribute labels the members and creates the objects with which the hub distributes the shop to one of them.
func (f *fleet) distribute(ctx context.Context) error {
	for _, m := range f.members {
		err := f.patch(ctx, m, func(c *v1alpha1.MemberCluster) { metav1.SetMetaDataLabel(&c.ObjectMeta, "tier", "retail") })
		if err != nil {
			return err
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: apps}}
	if err := client.IgnoreAlreadyExists(f.client.Create(ctx, namespace)); err != nil {
		return fmt.Errorf("create namespace %s: %w", apps, err)
	}
	for text, object := range map[string]client.Object{
		allowed: &tenancyv1alpha1.ClusterSetBinding{}, where: &placementv1alpha1.Placement{},
		what: &placementv1alpha1.WorkSet{},
	} {
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			return fmt.Errorf("read the %T: %w", object, err)
		}
		if err := f.client.Create(ctx, object); err != nil {
			return fmt.Errorf("create the %T: %w", object, err)
		}
	}
	if _, err := f.untilAvailable(ctx, func(*member) bool { return true }); err != nil {
		return err
	}
	binding := &tenancyv1alpha1.ClusterSetBinding{}
	if err := f.client.Get(ctx, client.ObjectKey{Namespace: apps, Name: "global"}, binding); err != nil {
		return fmt.Errorf("read the ClusterSetBinding of namespace %s: %w", apps, err)
	}
	say("      ClusterSetBinding %s/%s lets namespace %s place on the members of ClusterSet %s",
		binding.Namespace, binding.Name, apps, binding.Spec.ClusterSetName)
	return f.show(ctx)
}

// heal deletes the Deployment directly on its member, and waits until the agent has created it again.
func (f *fleet) heal(ctx context.Context) error {
	m, err := f.untilAvailable(ctx, func(*member) bool { return true })
	if err != nil {
		return err
	}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	if err := m.client.Get(ctx, client.ObjectKeyFromObject(web), web); err != nil {
		return fmt.Errorf("read Deployment web on %s: %w", m.name, err)
	}
	before := web.UID
	deleted := time.Now()
	if err := m.client.Delete(ctx, web); err != nil {
		return fmt.Errorf("delete Deployment web on %s: %w", m.name, err)
	}
	// The Deployment is created again quickly, so poll it without an interval.
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	for err := error(nil); err != nil || web.UID == before; err = m.client.Get(ctx, client.ObjectKeyFromObject(web), web) {
		if ctx.Err() != nil {
			return fmt.Errorf("waited %s for Deployment web to be back on %s", timeLimit, m.name)
		}
	}
	say("      Deployment web was deleted on %s behind the hub's back, and was there again %s later", m.name,
		time.Since(deleted).Round(time.Millisecond))
	_, err = f.untilAvailable(ctx, func(on *member) bool { return on == m })
	return err
}

// move taints the member that has the shop. The shop then moves to another member. If there is none, it returns after
// the taint was removed.
func (f *fleet) move(ctx context.Context) error {
	m, err := f.untilAvailable(ctx, func(*member) bool { return true })
	if err != nil {
		return err
	}
	tainted := time.Now()
	maintenance := v1alpha1.Taint{Key: "example.com/maintenance", Effect: corev1.TaintEffectNoExecute}
	err = f.patch(ctx, m, func(c *v1alpha1.MemberCluster) { c.Spec.Taints = append(c.Spec.Taints, maintenance) })
	if err != nil {
		return err
	}
	if len(f.members) > 1 {
		to, err := f.untilAvailable(ctx, func(on *member) bool { return on != m })
		if err != nil {
			return err
		}
		say("      %s was tainted NoExecute, and the shop was available on %s %s later", m.name, to.name,
			time.Since(tainted).Round(time.Millisecond))
	}
	err = until(ctx, timeLimit, m.name+" to give the shop back", func(ctx context.Context) (bool, string) {
		return noShop(ctx, m)
	})
	if err != nil {
		return err
	}
	if err := f.show(ctx); err != nil {
		return err
	}
	err = f.patch(ctx, m, func(c *v1alpha1.MemberCluster) {
		c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, func(t v1alpha1.Taint) bool { return t.Key == maintenance.Key })
	})
	if err != nil {
		return err
	}
	_, err = f.untilAvailable(ctx, func(*member) bool { return true })
	return err
}

// takeBack deletes the namespace with the distributed objects. The members have left before.
func (f *fleet) takeBack(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: apps}}
	if err := f.client.Delete(ctx, namespace); err != nil {
		return fmt.Errorf("delete namespace %s: %w", apps, err)
	}
	return until(ctx, timeLimit, "namespace "+apps+" to be gone", func(ctx context.Context) (bool, string) {
		err := f.client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		return apierrors.IsNotFound(err), fmt.Sprintf("it is %s: %v", namespace.Status.Phase, err)
	})
}

// untilAvailable waits until the shop is available on exactly one member for which will returns true, and returns that
// member.
func (f *fleet) untilAvailable(ctx context.Context, will func(*member) bool) (on *member, _ error) {
	err := until(ctx, timeLimit, "the shop to be available", func(ctx context.Context) (bool, string) {
		set := &placementv1alpha1.WorkSet{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: apps, Name: "shop"}, set); err != nil {
			return false, err.Error()
		}
		status := &set.Status
		if !meta.IsStatusConditionTrue(status.Conditions, placementv1alpha1.ConditionAvailable) || len(status.Clusters) != 1 {
			return false, orDash(status.Message)
		}
		for _, m := range f.members {
			if m.name == status.Clusters[0].Name {
				on = m
			}
		}
		return on != nil && will(on), fmt.Sprintf("it is on %s: %s", status.Clusters[0].Name, status.Message)
	})
	return on, err
}

// patch changes a MemberCluster with a resourceVersion precondition.
func (f *fleet) patch(ctx context.Context, m *member, change func(*v1alpha1.MemberCluster)) error {
	cluster := &v1alpha1.MemberCluster{}
	if err := f.client.Get(ctx, client.ObjectKey{Name: m.name}, cluster); err != nil {
		return fmt.Errorf("read MemberCluster %s: %w", m.name, err)
	}
	before := cluster.DeepCopy()
	change(cluster)
	// Taints are a list with keys, which the hub writes too. The optimistic lock turns a concurrent change into a
	// conflict.
	if err := f.client.Patch(ctx, cluster, client.MergeFromWithOptions(before,
		client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("change MemberCluster %s: %w", m.name, err)
	}
	return nil
}

// placed returns a line with the status of the Placement and of the WorkSet.
func (f *fleet) placed(ctx context.Context) string {
	placement, set := &placementv1alpha1.Placement{}, &placementv1alpha1.WorkSet{}
	key := client.ObjectKey{Namespace: apps, Name: "shop"}
	if f.client.Get(ctx, key, placement) != nil || f.client.Get(ctx, key, set) != nil {
		return ""
	}
	return fmt.Sprintf("Placement shop: %d of %d selected. WorkSet shop: %s\n",
		placement.Status.SelectedClusters, placement.Status.DesiredClusters, orDash(set.Status.Message))
}

// noShop reports whether a member has no objects of the shop any more.
func noShop(ctx context.Context, m *member) (bool, string) {
	if ok, why := nothing(ctx, m.client, &workv1alpha1.AppliedWorkList{}, client.MatchingLabels{}); !ok {
		return false, why
	}
	err := m.client.Get(ctx, client.ObjectKey{Name: "shop"}, &corev1.Namespace{})
	return apierrors.IsNotFound(err), fmt.Sprintf("namespace shop is left on %s: %v", m.name, err)
}
