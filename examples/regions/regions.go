// Package regions is the controller of a product that manages many clusters: it writes the number of healthy members of
// each region to a ConfigMap. Its test shows how a product tests its own controllers with package mustertest.
package regions

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Label is the label of a MemberCluster that contains its region.
const Label = "example.com/region"

// Key is the namespace and name of the ConfigMap.
var Key = types.NamespacedName{Namespace: "default", Name: "regions"}

// SetupWithManager adds the controller to a manager. The scheme of the manager must contain
// membership.muster.dev/v1alpha1. The controller needs get, list and watch on MemberClusters, and get, create and
// update on ConfigMaps.
func SetupWithManager(mgr manager.Manager) error {
	key := func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: Key}}
	}
	return builder.ControllerManagedBy(mgr).Named("regions").
		Watches(&v1alpha1.MemberCluster{}, handler.EnqueueRequestsFromMapFunc(key)).
		Complete(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, write(ctx, mgr.GetClient())
		}))
}

func write(ctx context.Context, c client.Client) error {
	var members v1alpha1.MemberClusterList
	if err := c.List(ctx, &members); err != nil {
		return fmt.Errorf("list MemberClusters: %w", err)
	}
	regions := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Key.Namespace, Name: Key.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, c, regions, func() error {
		regions.Data = count(members.Items)
		return nil
	}); err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", Key, err)
	}
	return nil
}

// count returns the number of healthy members in each region.
func count(members []v1alpha1.MemberCluster) map[string]string {
	healthy := map[string]int{}
	for i := range members {
		region, labeled := members[i].Labels[Label]
		if labeled && meta.IsStatusConditionTrue(members[i].Status.Conditions, v1alpha1.ConditionHealthy) {
			healthy[region]++
		}
	}
	data := map[string]string{}
	for region, n := range healthy {
		data[region] = strconv.Itoa(n)
	}
	return data
}
